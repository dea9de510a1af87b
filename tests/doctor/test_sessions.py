"""Sessions as a program opens them: real models, real plug-ins, and a real child process."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from attrs import evolve

from devicecore.device_factory import Candidate, Registration
from devicecore.doctor import (
    Case,
    Session,
    Trial,
    conv_search,
    engine_cache,
    option_dialect,
    reduced_precision,
    renamed_provider,
    sessions_to_try,
    silent_cpu_fallback,
    tried,
)
from devicecore.errors import MissingDependencyError, ModelError
from devicecore.liveness import Liveness, PhysicalDevice, hardware
from tests.doctor.conftest import SAYS_NOTHING

if TYPE_CHECKING:
    from collections.abc import Mapping

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

CUDA, TENSORRT = "CUDAExecutionProvider", "TensorrtExecutionProvider"
OPENVINO = "OpenVINOExecutionProvider"


def plugin() -> str:
    """Return a plug-in provider that runs on every CPU, and takes few operators."""
    spec = find_spec("nxrt_ep_cpu")
    if spec is None or spec.origin is None:
        pytest.skip("no plug-in that works here is installed")
    return str(next(Path(spec.origin).parent.glob("*cpu_plugin*")))


@pytest.fixture
def conv(tmp_path: Path) -> Path:
    return _conv_model(tmp_path / "conv.onnx", ["N", 1, "H", "W"])


@pytest.fixture
def fixed_conv(tmp_path: Path) -> Path:
    return _conv_model(tmp_path / "fixed.onnx", [1, 1, 8, 8])


def _conv_model(path: Path, shape: list[int | str]) -> Path:
    helper = onnx.helper
    weights = onnx.numpy_helper.from_array(np.ones((1, 1, 3, 3), np.float32), "w")
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", 1, shape)],
        [helper.make_tensor_value_info("y", 1, [None] * 4)],
        [weights],
    )
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)])
    path.write_bytes(model.SerializeToString())
    return path


def case(provider: str, options: Mapping[str, str] | None = None, **more: Any) -> Case:
    """Return the case of one session that nobody has opened."""
    return Case(sessions=(evolve(Session(provider, options or {}), **more),))


def test_a_provider_that_is_not_in_the_build(conv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "ROOT", SAYS_NOTHING)
    session = tried(Session(CUDA, model=conv))
    assert session.trial is not None
    if session.trial.listed:
        pytest.skip("this build has CUDA")
    assert session.trial.nodes == {"CPUExecutionProvider": session.trial.total}
    (found,) = silent_cpu_fallback.find(Case(sessions=(session,)))
    assert found.name == "silent-cpu-fallback"
    assert "was built without CUDAExecutionProvider" in found.evidence
    assert "onnxruntime-gpu" in found.fix


def test_a_provider_that_is_listed_and_takes_nothing() -> None:
    session = tried(Session("cpu_ep", model=_logreg(), library=plugin()))
    assert session.trial is not None
    assert session.trial.listed
    assert session.trial.devices >= 1
    (found,) = silent_cpu_fallback.find(Case(sessions=(session,)))
    assert "although session.get_providers() lists it" in found.evidence
    assert found.evidence.startswith("0 of 3 nodes")


def _logreg() -> Path:
    spec = find_spec("onnxruntime")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "datasets" / "logreg_iris.onnx"


def test_a_provider_that_takes_everything_is_no_finding() -> None:
    session = tried(Session("cpu_ep", library=plugin()))
    assert session.trial is not None
    assert session.trial.nodes == {"cpu_ep": session.trial.total}
    assert list(silent_cpu_fallback.find(Case(sessions=(session,)))) == []
    assert list(option_dialect.find(Case(sessions=(session,)))) == []


def test_a_part_on_the_cpu() -> None:
    """The numbers are made up: which models a plug-in takes in part changes with its version."""
    trial = Trial({"cpu_ep": 16, "CPUExecutionProvider": 20}, listed=True, devices=1)
    (found,) = silent_cpu_fallback.find(case("cpu_ep", trial=trial, library="a.so"))
    assert found.evidence.startswith("16 of 36 nodes")


def test_a_provider_that_raises(tmp_path: Path) -> None:
    no_plugin = tmp_path / "liba.so"
    no_plugin.write_text("text")
    session = tried(Session("cpu_ep", library=str(no_plugin)))
    assert session.trial is not None
    assert session.trial.error
    (found,) = silent_cpu_fallback.find(Case(sessions=(session,)))
    assert session.trial.error in found.evidence


def test_the_cpu_itself_is_no_finding(conv: Path) -> None:
    session = tried(Session("CPUExecutionProvider", model=conv))
    assert list(silent_cpu_fallback.find(Case(sessions=(session,)))) == []


@pytest.mark.parametrize(
    ("options", "problem", "advice"),
    [
        ({}, "searches all", "searches less"),
        ({"cudnn_conv_algo_search": "EXHAUSTIVE"}, "searches all", "searches less"),
        ({"cudnn_conv_algo_search": "default"}, "fallback mode", "unless nearly every call"),
    ],
)
def test_open_shapes_with_a_search(
    options: dict[str, str], problem: str, advice: str, conv: Path
) -> None:
    (finding,) = conv_search.find(Case(sessions=(tried(Session(CUDA, options, conv)),)))
    assert finding.name == "conv-search-on-dynamic-shapes"
    assert "x [N, 1, H, W]" in finding.evidence
    assert problem in finding.problem
    assert advice in finding.fix
    assert "pad inputs to a few sizes" in finding.fix  # no search makes a change of shape free


def test_the_heuristic_search_is_no_finding(conv: Path) -> None:
    session = tried(Session(CUDA, {"cudnn_conv_algo_search": "HEURISTIC"}, conv))
    assert not list(conv_search.find(Case(sessions=(session,))))


def test_fixed_shapes_or_no_convolution_cost_one_search(fixed_conv: Path) -> None:
    for model in (fixed_conv, None, _logreg()):
        assert not list(conv_search.find(Case(sessions=(tried(Session(CUDA, model=model)),))))


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("ROCMExecutionProvider", 'providers=["MIGraphXExecutionProvider"]'),
        ("cuda", 'providers=["CUDAExecutionProvider"]'),
        ("TensorRTExecutionProvider", 'providers=["TensorrtExecutionProvider"]'),
        ("caffe", "--library FILE"),
    ],
)
def test_names_that_nobody_knows(name: str, fix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "ROOT", SAYS_NOTHING)
    (found,) = renamed_provider.find(case(name))
    assert found.name == "renamed-or-removed-provider"
    assert found.fix.startswith(fix)


def test_a_name_that_only_a_plug_in_knows() -> None:
    assert list(renamed_provider.find(case("cpu_ep", library="a.so"))) == []
    assert list(renamed_provider.find(case(CUDA))) == []


@pytest.mark.parametrize(
    ("provider", "options", "said"),
    [
        (CUDA, {"trt_fp16_enable": "1"}, "options of TensorrtExecutionProvider"),
        (TENSORRT, {"cudnn_conv_algo_search": "DEFAULT"}, "options of CUDAExecutionProvider"),
        ("MIGraphXExecutionProvider", {"nv_x": "1"}, "options of NvTensorRTRTXExecutionProvider"),
    ],
)
def test_options_of_another_provider(provider: str, options: dict[str, str], said: str) -> None:
    (found,) = option_dialect.find(case(provider, options))
    assert found.name == "wrong-ep-device-or-option-dialect"
    assert said in found.problem
    assert next(iter(options)) in found.evidence


def test_the_plug_in_of_openvino_by_name_and_with_the_other_dialect() -> None:
    pytest.importorskip("onnxruntime_ep_openvino", reason="OpenVINO's plug-in is not installed")
    session = tried(Session(OPENVINO, {"device_type": "GPU", "cache_dir": "/x"}))
    assert session.trial is not None
    assert not session.trial.listed  # it is there, and its name is ignored
    by_name, ignored = option_dialect.find(Case(sessions=(session,)))
    assert "add_provider_for_devices" in by_name.fix
    assert ignored.evidence == "device_type is GPU, cache_dir is /x"
    assert "load_config" in ignored.fix


def test_devices_that_openvino_has_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime_ep_openvino", None)
    (found,) = option_dialect.find(case(OPENVINO, {"device_type": "BANANA"}))
    assert "'BANANA'" in found.problem
    for device in ("CPU", "GPU", "GPU.1", "NPU", "AUTO:GPU,CPU", "HETERO:GPU.0,CPU"):
        assert list(option_dialect.find(case(OPENVINO, {"device_type": device}))) == []


def test_a_gpu_that_this_process_does_not_see() -> None:
    """The GPUs are fakes."""
    gpus = tuple(PhysicalDevice("CUDA", index, description="a GPU") for index in range(2))
    registration = Registration("CUDA", "nowhere:Fake", 0)
    candidates = (Candidate(registration, 0, Liveness("live", "ran", devices=gpus), chosen=True),)
    for number, count in (("0", 0), ("1", 0), ("2", 1), ("GPU-1", 1)):
        sessions = (Session(CUDA, {"device_id": number}),)
        found = list(option_dialect.find(Case(candidates, sessions)))
        assert len(found) == count
        assert all(f"GPU {number}" in each.problem for each in found)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "at every start"),
        ({"trt_engine_cache_path": "/x"}, "at every start"),
        ({"trt_engine_cache_enable": "1", "trt_engine_cache_path": "engines"}, "not find"),
        ({"trt_engine_cache_enable": "1", "trt_engine_cache_path": "{file}/x"}, "cannot keep"),
        ({"trt_engine_cache_enable": "1", "trt_engine_cache_path": "{file}"}, "cannot keep"),
        ({"trt_engine_cache_enable": "True", "trt_engine_cache_path": "{new}"}, "the first"),
        ({"trt_engine_cache_enable": "1", "trt_engine_cache_path": "{full}"}, ""),
    ],
)
def test_engines(options: dict[str, str], said: str, tmp_path: Path, cache_dir: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a.engine").touch()
    places = {name: str(tmp_path / name) for name in ("file", "new", "full")}
    filled = {key: value.format(**places) for key, value in options.items()}
    found = list(engine_cache.find(case(TENSORRT, filled)))
    assert [said in finding.problem for finding in found] == [True] * bool(said)
    assert all(finding.name == "engine-build-or-cache" for finding in found)


def test_an_engine_that_takes_too_long(cache_dir: Path) -> None:
    session = tried(Session(OPENVINO), timeout_s=0.01)
    assert session.trial == Trial(timed_out=True)
    (found,) = engine_cache.find(Case(sessions=(session,)))
    assert "builds for minutes" in found.problem


@pytest.mark.parametrize(
    ("provider", "options", "said"),
    [
        (CUDA, {}, "use_tf32 is not set"),
        (CUDA, {"use_tf32": "1"}, "use_tf32 is 1"),
        (CUDA, {"use_tf32": "0"}, ""),
        (TENSORRT, {"trt_fp16_enable": "1"}, "trt_fp16_enable is 1"),
        (TENSORRT, {"trt_bf16_enable": "true"}, "trt_bf16_enable is true"),
        (TENSORRT, {"trt_fp16_enable": "0"}, ""),
        ("WebGpuExecutionProvider", {}, ""),
    ],
)
def test_precision(provider: str, options: dict[str, str], said: str) -> None:
    found = [each.evidence for each in reduced_precision.find(case(provider, options))]
    assert [said in evidence for evidence in found] == [True] * bool(said)


@pytest.mark.parametrize(
    ("options", "is_full"),
    [
        ({}, False),
        ({"load_config": '{"CPU": {"INFERENCE_PRECISION_HINT": "f32"}}'}, True),
        ({"load_config": '{"CPU": {"INFERENCE_PRECISION_HINT": "bf16"}}'}, False),
        ({"load_config": '{"INFERENCE_PRECISION_HINT": "f32"}'}, False),
        ({"load_config": "nonsense"}, False),
        ({"precision": "FP32"}, False),
    ],
)
def test_the_precision_of_openvinos_plug_in(options: dict[str, str], is_full: bool) -> None:
    pytest.importorskip("onnxruntime_ep_openvino", reason="OpenVINO's plug-in is not installed")
    assert bool(list(reduced_precision.find(case(OPENVINO, options)))) is not is_full


def test_the_precision_of_a_build_with_openvino(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime_ep_openvino", None)
    assert list(reduced_precision.find(case(OPENVINO))) == []
    assert list(reduced_precision.find(case(OPENVINO, {"precision": "FP16"})))


def test_a_bad_model_is_an_error_of_the_model(tmp_path: Path) -> None:
    page, garbage = tmp_path / "page.onnx", tmp_path / "garbage.onnx"
    page.write_text("<!doctype html>")
    garbage.write_bytes(b"\xff" * 100)
    for path, said in ((page, "web page"), (garbage, "garbage.onnx"), (tmp_path, "folder")):
        with pytest.raises(ModelError, match=said):
            tried(Session(CUDA, model=path))


def test_without_onnxruntime(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingDependencyError):
        tried(Session(CUDA))


def test_a_session_for_each_provider_that_is_installed(conv: Path) -> None:
    asked = sessions_to_try(conv)
    assert all(session.model == conv for session in asked)
    names = [session.provider for session in asked]
    assert "CPUExecutionProvider" not in names
    assert (OPENVINO in names) == (find_spec("onnxruntime_ep_openvino") is not None)


def test_what_a_provider_says_of_its_options() -> None:
    """The words are OpenVINO's and CUDA's own, which a test in throw-away environments hears."""
    for said in ("Invalid OpenVINO EP option: x", 'Unknown provider option: "x"'):
        (found,) = option_dialect.find(case(CUDA, {"x": "1"}, trial=Trial(error=said)))
        assert found.evidence == f"given x=1: {said}"
    fine = Trial(error="out of memory")
    assert list(option_dialect.find(case(CUDA, {"x": "1"}, trial=fine))) == []


EMBEDDED = """
import subprocess, sys
from pathlib import Path
from devicecore.doctor import Session, tried
sys.frozen = sys.argv[1] == "frozen"
def start(*_, **options):
    sys.exit("a process was started")
subprocess.Popen.__init__ = start
session = Session("OpenVINOExecutionProvider")
assert tried(session) is session
print(Path(sys.executable).name)
"""


@pytest.mark.parametrize("host", ["qgis", "frozen"])
def test_a_program_that_embeds_python_is_not_started_for_a_trial(host: str, tmp_path: Path) -> None:
    """The host is a real program with another name than Python's; frozen ones are faked."""
    program = tmp_path / host
    program.symlink_to(Path(sys.executable).resolve())
    done = subprocess.run(
        [program, "-c", EMBEDDED, host],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, f"{host}\n"), done.stderr
    (said,) = done.stderr.splitlines()
    assert said.startswith("a session of a model of two nodes on OpenVINOExecutionProvider was not")
    assert "has no interpreter to start; run `devicecore doctor` with a Python of its own" in said


def test_a_file_of_the_program_is_not_taken_for_a_module_of_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('the wrong one')")
    monkeypatch.chdir(tmp_path)
    trial = tried(Session("CPUExecutionProvider")).trial
    assert trial is not None
    assert trial.error == ""
    assert trial.listed
