"""`devicecore bench`, on real models, with real devices, and with fakes that say so."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from devicecore.cli import main
from devicecore.optional import package_dir
from devicecore.ort.tiny_model import tiny_model

if TYPE_CHECKING:
    from collections.abc import Sequence

pytest.importorskip("onnxruntime")

DTYPES = (
    *("float16", "float32", "float64", "bool", "int8", "int16", "int32", "int64"),
    *("uint8", "uint16", "uint32", "uint64"),
)


def call(words: Sequence[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = main(["bench", *words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def cpu_row(words: Sequence[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Measure on the CPU, and return the whole report with its only row as ``row``."""
    words = [*words, "--devices", "cpu", "--runs", "2", "--json"]
    code, out, err = call(words, capsys)
    assert (code, err) == (0, "")
    data: dict[str, Any] = json.loads(out)
    (data["row"],) = data["devices"]
    return data


def installed_model(package: str, *parts: str) -> str:
    folder = package_dir(package)
    path = folder.joinpath(*parts) if folder else Path()
    if not path.is_file():
        pytest.skip(f"{package} is not installed, or has no {parts[-1]}")
    return str(path)


def bundled(name: str) -> str:
    return installed_model("onnxruntime", "datasets", f"{name}.onnx")


def saved(tmp_path: Path, nodes: list[Any], inputs: list[Any], outputs: list[Any]) -> str:
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    opset = [helper.make_opsetid("", 16)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=8)
    path = tmp_path / "made.onnx"
    path.write_bytes(model.SerializeToString())
    return str(path)


def tensor(name: str, kind: int = TensorProto.FLOAT, shape: Any = (2, 3)) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


class TestOnTheCpu:
    def test_all_values_as_data(self, capsys: pytest.CaptureFixture[str]) -> None:
        data = cpu_row([bundled("mul_1")], capsys)
        row = data.pop("row")
        assert data["inputs"] == [
            {"name": "X", "dtype": "float32", "shape": [3, 2], "chosen_axes": []}
        ]
        assert data["fastest"] == row["name"] == "/job:localhost/replica:0/task:0/device:CPU:0"
        assert row["provider"] == "CPUExecutionProvider"
        assert (row["live_nodes"], row["total_nodes"], row["runs"]) == (1, 1, 2)
        assert (row["max_error_absolute"], row["max_error_relative"]) == (0, 0)
        assert (row["agrees"], row["fault"], row["error"]) == (True, "", "")
        assert 0 < row["median_ms"] <= row["p99_ms"]
        assert row["load_ms"] > row["median_ms"]
        assert row["device_memory_bytes"] is None

    def test_a_table_in_a_pipe(self, capsys: pytest.CaptureFixture[str]) -> None:
        code, out, err = call([bundled("sigmoid"), "--devices", "cpu, CPU:0"], capsys)
        assert (code, err) == (0, "")
        lines = out.splitlines()
        assert lines[0] == "sigmoid.onnx, precision f32"
        assert lines[1].split() == ["x", "float32", "[3,", "4,", "5]"]
        assert lines.count("times in ms") == 1
        assert sum("CPU:0" in line for line in lines[:-1]) == 2
        assert lines[-1].startswith("fastest of those that give the CPU's answer: CPU:0, ")
        assert max(map(len, lines)) <= 80
        assert "\x1b" not in out

    def test_every_live_device_is_measured_if_none_is_named(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        listed = main(["devices", "--json"])
        devices = json.loads(capsys.readouterr().out)["devices"]
        code, out, _ = call([bundled("sigmoid"), "--runs", "1", "--json"], capsys)
        assert (listed, code) == (0, 0)
        able = [each["name"] for each in devices if "onnx" in each["frameworks"]]
        assert [each["name"] for each in json.loads(out)["devices"]] == able

    def test_sizes_that_the_model_leaves_open(self, capsys: pytest.CaptureFixture[str]) -> None:
        model = installed_model("rapidocr", "models", "ch_ppocr_mobile_v2.0_cls_mobile.onnx")
        (chosen,) = cpu_row([model], capsys)["inputs"]
        assert (chosen["shape"], chosen["chosen_axes"]) == ([1, 3, 224, 224], [0, 2, 3])
        data = cpu_row([model, "--shape", "x=2,3,48,192"], capsys)
        assert data["inputs"][0]["shape"] == [2, 3, 48, 192]
        assert data["inputs"][0]["chosen_axes"] == []
        assert data["row"]["total_nodes"] > 100

    @pytest.mark.parametrize(
        ("package", "parts"),
        [
            ("magika", ("models", "standard_v3_3", "model.onnx")),
            ("onnx", ("backend", "test", "data", "light", "light_squeezenet.onnx")),
            ("onnxruntime", ("datasets", "logreg_iris.onnx")),  # gives texts, and a map for each
        ],
        ids=lambda value: value if isinstance(value, str) else value[-1],
    )
    def test_real_models(
        self, package: str, parts: tuple[str, ...], capsys: pytest.CaptureFixture[str]
    ) -> None:
        row = cpu_row([installed_model(package, *parts)], capsys)["row"]
        assert row["agrees"]

    def test_every_element_type(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        kinds = {name: helper.np_dtype_to_tensor_dtype(np.dtype(name)) for name in DTYPES} | {
            "text": TensorProto.STRING
        }
        model = saved(
            tmp_path,
            [helper.make_node("Identity", [f"{name}/in"], [name]) for name in kinds],
            [tensor(f"{name}/in", kind, []) for name, kind in kinds.items()],
            [tensor(name, kind, []) for name, kind in kinds.items()],
        )
        data = cpu_row([model], capsys)
        assert [(each["dtype"], each["shape"]) for each in data["inputs"]] == [
            (name, []) for name in kinds
        ]
        assert data["row"]["agrees"]

    def test_outputs_that_numpy_does_not_have(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        kinds = {"a": TensorProto.BFLOAT16, "b": TensorProto.FLOAT8E4M3FN}
        nodes = [helper.make_node("Cast", ["x"], [name], to=kind) for name, kind in kinds.items()]
        outputs = [tensor(name, kind) for name, kind in kinds.items()]
        graph = helper.make_graph(nodes, "g", [tensor("x")], outputs)
        opset = [helper.make_opsetid("", 19)]
        path = tmp_path / "made.onnx"
        made = helper.make_model(graph, opset_imports=opset, ir_version=9)
        path.write_bytes(made.SerializeToString())
        row = cpu_row([str(path)], capsys)["row"]
        assert (row["agrees"], row["max_error_absolute"]) == (True, 0)

    def test_a_sequence_comes_out(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        nodes = [helper.make_node("SequenceConstruct", ["x", "x"], ["s"])]
        output = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)
        assert cpu_row([saved(tmp_path, nodes, [tensor("x")], [output])], capsys)["row"]["agrees"]

    def test_memory_that_a_model_takes(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        model = saved(
            tmp_path,
            [helper.make_node("Neg", ["x"], ["y"])],
            [tensor("x", 1, ["n"])],
            [tensor("y", 1, ["n"])],
        )
        if not sys.platform.startswith(("linux", "darwin")):
            pytest.skip("this system does not tell the peak of a process")
        mebibytes = 64
        data = cpu_row([model, "--shape", f"x={mebibytes << 18}"], capsys)
        assert data["row"]["host_memory_bytes"] >= mebibytes << 20

    @pytest.mark.parametrize("policy", ["none", "all"])
    def test_what_it_keeps(
        self, policy: str, cache_dir: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        data = cpu_row([bundled("sigmoid"), "--cache", policy], capsys)
        assert data["cache"] == policy
        assert data["row"]["agrees"]
        assert any(cache_dir.rglob("*.ort")) is (policy == "all")

    def test_a_model_that_is_random(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        nodes = [helper.make_node("RandomUniform", [], ["y"], shape=[50])]
        data = cpu_row([saved(tmp_path, nodes, [], [tensor("y", 1, [50])])], capsys)
        assert not data["row"]["agrees"]
        assert data["row"]["max_error_absolute"] > 0.001
        assert data["fastest"] is None

    def test_the_cpu_itself_gives_nan(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        nodes = [helper.make_node("Neg", ["x"], ["t"]), helper.make_node("Log", ["t"], ["y"])]
        model = saved(tmp_path, nodes, [tensor("x")], [tensor("y")])
        assert cpu_row([model], capsys)["reference_has_nan"]
        _, out, _ = call([model, "--devices", "cpu"], capsys)
        assert "the CPU's own answer has NaN" in out


class TestInputsOfAFile:
    def test_a_model_that_refuses_generated_ones(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        nodes = [helper.make_node("Gather", ["x", "i"], ["y"])]
        inputs = [tensor("x", 1, [1]), tensor("i", TensorProto.INT64, [40])]
        model = saved(tmp_path, nodes, inputs, [tensor("y", 1, [40])])
        code, out, err = call([model, "--devices", "cpu"], capsys)
        assert (code, out) == (1, "")
        assert "it refuses generated inputs" in err
        assert err.endswith("give --shape NAME=SIZE,SIZE or --inputs FILE.npz\n")
        file = tmp_path / "inputs.npz"
        np.savez(file, x=np.ones(1, np.float32), i=np.zeros(40, np.int64))
        data = cpu_row([model, "--inputs", str(file)], capsys)
        assert [each["name"] for each in data["inputs"]] == ["x", "i"]
        assert data["row"]["agrees"]

    def test_texts(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        nodes = [helper.make_node("Identity", ["x"], ["y"])]
        text = TensorProto.STRING
        model = saved(tmp_path, nodes, [tensor("x", text, ["n"])], [tensor("y", text, ["n"])])
        file = tmp_path / "inputs.npz"
        np.savez(file, x=np.array(["été", "a"]))
        data = cpu_row([model, "--inputs", str(file)], capsys)
        assert data["inputs"] == [{"name": "x", "dtype": "text", "shape": [2], "chosen_axes": []}]
        assert data["row"]["agrees"]

    def test_those_of_another_model(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        file = tmp_path / "inputs.npz"
        np.savez(file, z=np.ones(1, np.float32))
        code, _, err = call([bundled("sigmoid"), "--inputs", str(file)], capsys)
        assert code == 1
        assert "it takes 'x': float32 [3, 4, 5], given 'z'" in err

    @pytest.mark.parametrize("content", ["nothing", "text", "one array", "objects", "no file"])
    def test_files_that_are_none(
        self, content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        file = tmp_path / "inputs.npz"
        if content == "nothing":
            file.touch()
        elif content == "text":
            file.write_text("x = 1")
        elif content == "one array":
            with file.open("wb") as opened:
                np.save(opened, np.ones(1))
        elif content == "objects":
            np.savez(file, x=np.array([{}], object))
        code, out, err = call([bundled("sigmoid"), "--inputs", str(file)], capsys)
        assert (code, out) == (2, "")
        assert "inputs.npz cannot be read" in err
        assert err.count("\n") == 1


class TestCallsThatFail:
    @pytest.mark.parametrize(
        ("words", "code", "said"),
        [
            (["nowhere.onnx"], 1, "there is no such file"),
            (["{page}"], 1, "it is a web page"),
            (["{cut}"], 1, "cannot be used"),
            (["{model}", "--devices", "cpu:99"], 1, "no device is called 'cpu:99'"),
            (["{model}", "--devices", "cpu,/nonsense"], 2, "invalid device name"),
            (["{model}", "--devices", " , "], 2, "names no device"),
            (["{model}", "--shape", "x"], 2, "names no input and its sizes"),
            (["{model}", "--shape", "x=1,many"], 2, "names no input and its sizes"),
            (["{model}", "--shape", f"x={'9' * 5000}"], 2, "names no input and its sizes"),
            (["{model}", "--shape", "z=1"], 2, "no input 'z'"),
            (["{model}", "--shape", "x=2,8"], 2, "it takes 'x' as [2, 4]"),
            (["{model}", "--shape", "x=2"], 2, "does not fit"),
            (["{model}", "--shape", "x=2,4", "--inputs", "a.npz"], 2, "give one of them"),
            (["{model}", "--runs", "0"], 2, "--runs is 0"),
            (["{model}", "--seconds", "-1"], 2, "--seconds is -1"),
            (["{model}", "--timeout", "nan"], 2, "--timeout is nan"),
            (["{model}", "--timeout", "1e-3"], 1, "it took longer than 0.001 s, and was stopped"),
            (["{big}", "--shape", f"x={1 << 50}"], 1, "was not run on the CPU, with which all"),
        ],
    )
    def test_they_say_why_in_one_line(
        self,
        words: list[str],
        code: int,
        said: str,
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        files = {name: tmp_path / f"{name}.onnx" for name in ("page", "cut", "model")}
        files["page"].write_text("<html>")
        files["cut"].write_bytes(tiny_model()[:60])
        files["model"].write_bytes(tiny_model())
        nodes = [helper.make_node("Neg", ["x"], ["y"])]
        sizes = [tensor(name, TensorProto.FLOAT, ["n"]) for name in "xy"]
        files["big"] = Path(saved(tmp_path, nodes, sizes[:1], sizes[1:]))
        got, out, err = call([word.format(**files) for word in words], capsys)
        assert (got, out) == (code, "")
        assert said in err
        assert err.startswith("devicecore: ")
        assert err.count("\n") == 1

    @pytest.mark.skipif("sys.platform == 'darwin'", reason="MPS may be live here")
    def test_a_device_that_is_not_live(self, capsys: pytest.CaptureFixture[str]) -> None:
        code, out, err = call([bundled("sigmoid"), "--devices", "mps"], capsys)
        assert (code, out) == (1, "")
        assert err.startswith("devicecore: MPS")

    @pytest.mark.parametrize("kind", ["sequence", "bfloat16"])
    def test_inputs_that_cannot_be_generated(
        self, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        if kind == "sequence":
            nodes = [helper.make_node("SequenceLength", ["x"], ["y"])]
            given = helper.make_tensor_sequence_value_info("x", TensorProto.FLOAT, None)
        else:
            nodes = [helper.make_node("Shape", ["x"], ["y"])]
            given = tensor("x", TensorProto.BFLOAT16)
        model = saved(tmp_path, nodes, [given], [tensor("y", TensorProto.INT64, None)])
        code, out, err = call([model, "--devices", "cpu"], capsys)
        assert (code, out) == (1, "")
        assert "cannot be generated" in err
