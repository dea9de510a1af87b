"""`devicecore bench` on a real plug-in provider and on fakes, each in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from onnx import TensorProto, helper

from devicecore.optional import package_dir

pytest.importorskip("onnxruntime")

PLUGIN = Path(__file__).parents[1] / "plugins" / "bench_devices"
SIGMOID = str((package_dir("onnxruntime") or Path()) / "datasets" / "sigmoid.onnx")


@pytest.fixture
def bench(cache_dir: Path) -> Any:
    """Return a function that runs the command where the devices of the plug-in are found."""
    environment = {
        **os.environ,
        "DEVICECORE_CACHE_DIR": str(cache_dir),
        # Our own accelerators are tested elsewhere; here they would only be slow.
        "DEVICECORE_EXCLUDE": "CUDA,TENSORRT,ROCM,MPS,XPU,COREML,OPENVINO,WEBGPU",
        "PYTHONPATH": os.pathsep.join([str(PLUGIN), *filter(None, sys.path)]),
    }

    def run(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "devicecore", "bench", *words],
            capture_output=True,
            text=True,
            check=False,
            env={**environment, **more},
        )

    return run


def test_wrong_ones_are_marked_and_failed_ones_are_rows(bench: Any) -> None:
    done = bench(SIGMOID, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    data = json.loads(done.stdout)
    rows = {each["name"].rpartition(":")[0].rpartition(":")[2]: each for each in data["devices"]}
    assert rows["CPU"]["agrees"]
    for name in ("FAKEWRONG", "FAKELATE"):
        assert rows[name]["max_error_absolute"] == pytest.approx(0.5, abs=1e-6)
        assert rows[name]["max_error_relative"] > 0.5
        assert not rows[name]["agrees"]
    assert rows["FAKENAN"]["fault"] == "NaN"
    assert rows["FAKENAN"]["max_error_absolute"] is None
    assert rows["FAKEWRONG"]["device_memory_bytes"] >= 1 << 20
    assert "killed by SIGSEGV while running for the first time" in rows["FAKECRASH"]["error"]
    assert rows["FAKEEXIT"]["error"].endswith(
        "exit code 3 while running for the first time: no licence"
    )
    assert "the fake is out of order" in rows["FAKEREFUSING"]["error"]
    assert "median_ms" not in rows["FAKECRASH"]
    assert "FAKEDEAD" not in rows
    if "NXRT" in rows:
        assert rows["NXRT"]["provider"] == "cpu_ep"
        assert rows["NXRT"]["agrees"]
    assert data["fastest"].rpartition("/device:")[2] in ("CPU:0", "NXRT:0")


def test_the_table_says_it_too(bench: Any) -> None:
    names = "fakewrong,fakenan,fakecrash"
    done = bench(SIGMOID, "--devices", names)
    assert (done.returncode, done.stderr) == (1, "")  # one that was named did not run it
    ran, _, failed = done.stdout.partition("could not run it\n")
    assert ran.index("FAKEWRONG:0") < ran.index("FAKENAN:0")
    _, nan = (line.split() for line in ran.splitlines() if "FAKENAN:0" in line)
    assert nan[:5] == ["FAKENAN:0", "1/1", "NaN", "-", "NO"]
    assert failed.startswith("  FAKECRASH:0  its process was killed by SIGSEGV")
    assert failed.endswith("no device gave the CPU's answer\n")
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_a_dead_one_that_is_named(bench: Any) -> None:
    done = bench(SIGMOID, "--devices", "cpu,fakedead")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "devicecore: FAKEDEAD for onnx is absent; there is no such GPU; buy one\n"
    )


def test_a_device_that_takes_a_part_of_the_model(bench: Any, tmp_path: Path) -> None:
    pytest.importorskip("nxrt_ep_cpu", reason="no plug-in that works here is installed")
    nodes = [
        helper.make_node("MatMul", ["x", "x"], ["t"]),
        helper.make_node("Det", ["t"], ["y"]),
    ]
    done = bench(saved(tmp_path, nodes, "x", []), "--devices", "nxrt", "--json")
    (row,) = json.loads(done.stdout)["devices"]
    assert (row["live_nodes"], row["total_nodes"]) == (1, 2)
    assert row["agrees"]


def test_a_pipe_that_lacks_letters(bench: Any, tmp_path: Path) -> None:
    """As one on Windows does: its encoding is that of the country."""
    nodes = [helper.make_node("Neg", ["entrée→"], ["y"])]
    model = saved(tmp_path, nodes, "entrée→", [4, 4])
    done = bench(model, "--devices", "cpu", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert "  entr\\xe9e\\u2192  float32  [4, 4]\n" in done.stdout


def saved(tmp_path: Path, nodes: list[Any], name: str, shape: list[int]) -> str:
    """Write a model from a 4 by 4 matrix called *name* to ``y``."""
    given = helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 4])
    gives = helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)
    graph = helper.make_graph(nodes, "g", [given], [gives])
    opset = [helper.make_opsetid("", 13)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=8)
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return str(path)
