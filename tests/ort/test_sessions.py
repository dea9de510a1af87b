"""Sessions: on the provider that was asked for, or an error that says why not."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from devicecore.config import effective_cpu_count
from devicecore.errors import MissingDependencyError, ModelError, NotLiveError
from devicecore.liveness import hardware
from devicecore.ort import CPU_PROVIDER, SessionSpec, ep_devices, open_session, register
from devicecore.ort.provider_options import Preferences, provider_options
from devicecore.ort.tiny_model import expected_values, tiny_model

onnxruntime = pytest.importorskip("onnxruntime")
CPU = SessionSpec(CPU_PROVIDER)
X = np.array([[1, -2, 3, 0], [-1, 2, 0, 4]], np.float32)


@pytest.fixture(scope="module")
def plugin() -> SessionSpec:
    """A real plug-in provider that works on every CPU, for a few operators."""
    reason = "no plug-in provider that works on this CPU is installed"
    package = pytest.importorskip("nxrt_ep_cpu", reason=reason)
    return SessionSpec("cpu_ep", {}, 0, package.get_library_path())


def mixed_model() -> bytes:
    """Return a model of one node that the plug-in takes, and one that it leaves to the CPU."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["t"]), helper.make_node("Det", ["t"], ["y"])]
    graph = helper.make_graph(
        nodes,
        "mixed",
        [helper.make_tensor_value_info("x", 1, [4, 4])],
        [helper.make_tensor_value_info("y", 1, None)],
        [helper.make_tensor("w", 1, [4, 4], np.eye(4, dtype=np.float32).ravel())],
    )
    opset = [helper.make_opsetid("", 13)]
    return bytes(helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString())


def cpu_only_model() -> bytes:
    """Return a model of which the plug-in takes nothing."""
    graph = helper.make_graph(
        [helper.make_node("Det", ["x"], ["y"])],
        "cpu only",
        [helper.make_tensor_value_info("x", 1, [4, 4])],
        [helper.make_tensor_value_info("y", 1, None)],
    )
    opset = [helper.make_opsetid("", 13)]
    return bytes(helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString())


def test_the_tiny_model_is_a_valid_model() -> None:
    import onnx

    model = onnx.load_from_string(tiny_model())
    onnx.checker.check_model(model, full_check=True)
    assert [node.op_type for node in model.graph.node] == ["MatMul", "Relu"]


def test_its_expected_values_are_right() -> None:
    from onnx.reference import ReferenceEvaluator

    (y,) = ReferenceEvaluator(tiny_model()).run(None, {"x": X})
    assert tuple(np.asarray(y).ravel()) == expected_values()


def test_a_session_on_the_cpu_runs_and_is_counted() -> None:
    opened = open_session(tiny_model(), CPU)
    assert tuple(opened.run({"x": X})["y"].ravel()) == expected_values()
    assert opened.nodes == {CPU_PROVIDER: 2}
    assert (opened.live_nodes, opened.total_nodes) == (2, 2)


def test_a_plugin_runs_through_its_device(plugin: SessionSpec) -> None:
    opened = open_session(tiny_model(), plugin)
    assert tuple(opened.run({"x": X})["y"].ravel()) == expected_values()
    assert opened.nodes == {"cpu_ep": 2}


def test_a_partial_placement_is_counted_and_can_be_refused(plugin: SessionSpec) -> None:
    opened = open_session(mixed_model(), plugin)
    assert opened.nodes == {"cpu_ep": 1, CPU_PROVIDER: 1}
    assert opened.run({"x": np.diag([1, 2, 3, 4]).astype(np.float32)})["y"] == pytest.approx(24)
    assert open_session(mixed_model(), plugin, min_nodes=0.5).live_nodes == 1
    with pytest.raises(NotLiveError, match=r"1 of the 2 nodes .* share of 0\.6"):
        open_session(mixed_model(), plugin, min_nodes=0.6)


def test_a_provider_that_takes_no_node_is_refused(plugin: SessionSpec) -> None:
    with pytest.raises(
        NotLiveError, match="cpu_ep is broken; it takes none of the model's 1 nodes"
    ):
        open_session(cpu_only_model(), plugin)


def test_where_the_runtime_does_not_tell_a_profile_does(
    plugin: SessionSpec, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # As onnxruntime < 1.24 is; the profile and its numbers are real.
    for module in ("session_creation", "session"):
        monkeypatch.setattr(f"devicecore.ort.{module}.can_record", lambda _: False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    opened = open_session(mixed_model(), plugin)
    assert opened.nodes == {}
    feeds = {"x": np.eye(4, dtype=np.float32)}
    assert opened.run(feeds)["y"] == pytest.approx(1)
    assert opened.nodes == {"cpu_ep": 1, CPU_PROVIDER: 1}
    assert opened.run(feeds)["y"] == pytest.approx(1)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(NotLiveError, match="none of the model's 1 nodes"):
        open_session(cpu_only_model(), plugin).run(feeds)


@pytest.mark.parametrize("known", [True, False], ids=["no GPU", "who knows"])
def test_a_provider_that_is_not_built_in_is_named_with_its_package(
    monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    """Whether there is a GPU is a fake."""
    monkeypatch.setattr(hardware, "pci_gpus", lambda *_, **__: [] if known else None)
    monkeypatch.setattr(hardware, "exists", lambda _: False)
    if "CUDAExecutionProvider" in onnxruntime.get_available_providers():
        pytest.skip("this onnxruntime has CUDA")
    with pytest.raises(NotLiveError) as caught:
        open_session(tiny_model(), SessionSpec("CUDAExecutionProvider"))
    if known:
        said = ("absent", "there is no NVIDIA GPU here", "")
        assert (caught.value.state, caught.value.reason, caught.value.fix) == said
        return
    assert caught.value.state == "missing"
    assert "was built without CUDAExecutionProvider" in caught.value.reason
    assert caught.value.fix.endswith("pip install onnxruntime-gpu")


def test_an_unknown_provider_is_an_error() -> None:
    with pytest.raises(NotLiveError, match="NoSuchExecutionProvider is missing"):
        open_session(tiny_model(), SessionSpec("NoSuchExecutionProvider"))


def test_a_device_that_the_plugin_does_not_have_is_absent(plugin: SessionSpec) -> None:
    with pytest.raises(NotLiveError, match="cpu_ep is absent; registered, but it offers 1 devices"):
        open_session(tiny_model(), SessionSpec("cpu_ep", {}, 7, plugin.library))


def test_a_library_is_registered_once_and_its_devices_do_not_double(plugin: SessionSpec) -> None:
    assert plugin.library is not None
    register(plugin.library)
    before = ep_devices("cpu_ep")
    register(Path(plugin.library))
    assert ep_devices("cpu_ep") == before
    assert [device.library for device in before] == [plugin.library]
    assert [device.hardware for device in before] == ["CPU"]


def test_a_library_that_the_program_registered_itself_is_not_registered_again() -> None:
    package = pytest.importorskip("nxrt_ep_cpu", reason="no plug-in provider is installed")
    code = f"""
import onnxruntime
from devicecore.ort import ep_devices, register
onnxruntime.register_execution_provider_library("mine", {package.get_library_path()!r})
register({package.get_library_path()!r})
print(len(ep_devices("cpu_ep")))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "1\n"


@pytest.mark.parametrize("kind", ["missing", "text", "no plug-in"])
def test_what_is_no_plugin_is_refused(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "plugin.so"
    if kind == "text":
        file.write_text("no library", encoding="ascii")
    elif kind == "no plug-in":
        file = Path(onnxruntime.__file__).parent / "capi" / "libonnxruntime_providers_shared.so"
    with pytest.raises(NotLiveError) as caught:
        register(file)
    assert caught.value.state == "broken"
    assert "ONNXRuntimeError" not in caught.value.reason


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is empty"),
        (b"  <!DOCTYPE html><html>", "it is a web page"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0", "git-lfs pointer"),
        (b"\0" * 64, "it is no ONNX model, or cut short"),
        (tiny_model()[:60], "it is no ONNX model, or cut short"),
    ],
    ids=["empty", "web page", "lfs pointer", "garbage", "truncated"],
)
@pytest.mark.parametrize("as_file", [True, False], ids=["file", "bytes"])
def test_what_is_no_model_is_told_apart(
    content: bytes, reason: str, as_file: bool, tmp_path: Path
) -> None:
    file = tmp_path / "model.onnx"
    file.write_bytes(content)
    with pytest.raises(ModelError, match=reason) as caught:
        open_session(file if as_file else content, CPU)
    assert "\n" not in str(caught.value)


def test_a_missing_file_and_a_folder_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="there is no such file"):
        open_session(tmp_path / "gone.onnx", CPU)
    with pytest.raises(ModelError, match="it is a folder"):
        open_session(tmp_path, CPU)


def test_a_model_too_new_for_this_runtime_says_so() -> None:
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])],
        "new",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])],
    )
    opset = [helper.make_opsetid("", 99)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=8)
    with pytest.raises(ModelError, match="it is too new"):
        open_session(model.SerializeToString(), CPU)


def test_values_that_the_model_cannot_take_are_an_error_of_ours() -> None:
    with pytest.raises(ModelError, match="check the values"):
        open_session(tiny_model(), CPU).run({"x": X[:1]})


def test_threads_are_those_that_may_be_used_unless_given() -> None:
    used = open_session(tiny_model(), CPU).session.get_session_options().intra_op_num_threads
    assert used == effective_cpu_count()
    one = open_session(tiny_model(), CPU, threads=1).session.get_session_options()
    assert one.intra_op_num_threads == 1


def test_session_options_reach_the_runtime() -> None:
    key = "session.disable_prepacking"
    opened = open_session(tiny_model(), CPU, session_options={key: "1"})
    assert opened.session.get_session_options().get_session_config_entry(key) == "1"


def test_without_the_runtime_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingDependencyError, match=r"devicecore\[onnx\]"):
        open_session(tiny_model(), CPU)


def test_nothing_is_ever_printed(plugin: SessionSpec) -> None:
    code = f"""
import numpy as np
from devicecore.errors import DeviceCoreError
from devicecore.ort import PROVIDERS, SessionSpec, open_session, plugin_library, probe_provider
from devicecore.ort.tiny_model import tiny_model
for known in PROVIDERS.values():
    probe_provider(SessionSpec(known.name))
    if known.plugin and (library := plugin_library(known.plugin)):
        probe_provider(SessionSpec(known.name, {{}}, 0, str(library)))
cpu = SessionSpec("CPUExecutionProvider")
plugin = SessionSpec("cpu_ep", {{}}, 0, {plugin.library!r})
strict = {{"session.disable_cpu_ep_fallback": "1"}}
for model, spec in [(b"garbage" * 9, cpu), ({cpu_only_model()!r}, plugin)]:
    try:
        open_session(model, spec, session_options=strict)
    except DeviceCoreError:
        continue
    raise SystemExit("that should have failed")
try:
    open_session(tiny_model(), cpu).run({{"x": np.zeros((9, 9), np.float32)}})
except DeviceCoreError:
    pass
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


# What OpenVINO's provider takes "FP32" for, by the table in its own sources; a name that says the
# precision already takes none beside it.
OPENVINO_DEVICES = {
    "CPU": True,
    "GPU": True,
    "GPU.1": True,
    "AUTO": True,
    "AUTO:GPU,CPU": True,
    "HETERO:GPU.1,CPU": True,
    "NPU": False,
    "NPU.4000": False,
    "AUTO:NPU,CPU": False,
    "HETERO:GPU, NPU": False,
    "CPU_FP32": False,
    "GPU.1_FP16": False,
}
_EXHAUSTIVE = {"cudnn_conv_algo_search": "EXHAUSTIVE"}


@pytest.mark.parametrize(
    ("spec", "metadata", "expected"),
    [
        (CPU, {}, {}),
        (
            SessionSpec("CUDAExecutionProvider"),
            {},
            {"cudnn_conv_algo_search": "HEURISTIC", "use_tf32": "0"},
        ),
        (
            SessionSpec("CUDAExecutionProvider", {"use_tf32": "1", **_EXHAUSTIVE}),
            {},
            {"use_tf32": "1", **_EXHAUSTIVE},
        ),
        (SessionSpec("OpenVINOExecutionProvider"), {}, {"precision": "FP32"}),
        *(
            (
                SessionSpec("OpenVINOExecutionProvider", {"device_type": name}),
                {},
                {"device_type": name, **({"precision": "FP32"} if has_float32 else {})},
            )
            for name, has_float32 in OPENVINO_DEVICES.items()
        ),
        (SessionSpec("OpenVINOExecutionProvider", {}, 0), {"ov_device": "NPU"}, {}),
        (
            SessionSpec("OpenVINOExecutionProvider", {}, 0),
            {"ov_device": "GPU"},
            {"load_config": '{"GPU": {"INFERENCE_PRECISION_HINT": "f32"}}'},
        ),
        (
            SessionSpec("OpenVINOExecutionProvider", {"load_config": '{"CPU": {"A": 1}}'}, 0),
            {"ov_device": "CPU"},
            {"load_config": '{"CPU": {"A": 1, "INFERENCE_PRECISION_HINT": "f32"}}'},
        ),
    ],
    ids=[
        *(
            "CPU",
            "CUDA",
            "CUDA set",
            "OpenVINO in-tree",
            *(f"for {name}" for name in OPENVINO_DEVICES),
        ),
        *("OpenVINO plug-in for an NPU", "OpenVINO plug-in", "OpenVINO merged"),
    ],
)
def test_float32_is_said_in_each_providers_words(
    spec: SessionSpec, metadata: dict[str, str], expected: dict[str, str]
) -> None:
    assert provider_options(spec, Preferences("f32"), metadata) == expected
    unsaid = provider_options(spec, Preferences("default"), metadata)
    assert {name: unsaid[name] for name in unsaid if name != "cudnn_conv_algo_search"} == {
        name: value for name, value in spec.options.items() if name not in _EXHAUSTIVE
    }


def test_openvino_computes_in_float32_by_default() -> None:
    package = pytest.importorskip("onnxruntime_ep_openvino", reason="no OpenVINO plug-in")
    spec = SessionSpec("OpenVINOExecutionProvider", {}, 0, package.get_library_path())
    register(package.get_library_path())
    if not ep_devices("OpenVINOExecutionProvider"):
        pytest.skip("the OpenVINO plug-in offers no device for this CPU")
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((2, 64, 64)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "product",
        [helper.make_tensor_value_info("x", 1, [64, 64])],
        [helper.make_tensor_value_info("y", 1, [64, 64])],
        [helper.make_tensor("w", 1, [64, 64], w.ravel())],
    )
    opset = [helper.make_opsetid("", 13)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString()
    y = open_session(model, spec).run({"x": x})["y"]
    np.testing.assert_allclose(y, x @ w, rtol=0, atol=1e-4)  # bf16 is off by 0.1
