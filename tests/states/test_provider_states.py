"""Every state that a provider can be in, made of real components, and the words that tell it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from attrs import field, frozen

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the wheels are those of Linux")

PROGRAM = Path(__file__).with_name("answer.py")
BUILT_IN = ("onnxruntime-openvino==1.24.1", "numpy==2.4.6")
BOTH = ("onnxruntime==1.32.0", "onnxruntime-openvino==1.24.1")
OLD = ("onnxruntime==1.28.0", "numpy==2.4.6")
SQUEEZENET = ("onnx", "backend/test/data/light/light_squeezenet.onnx")
RESNET = ("onnx", "backend/test/data/light/light_resnet50.onnx")
MAGIKA = ("magika", "models/standard_v3_3/model.onnx")
IRIS = ("onnxruntime", "datasets/logreg_iris.onnx")
DETECTOR = ("rapidocr_onnxruntime", "models/ch_PP-OCRv4_det_infer.onnx")
RECOGNISER = ("rapidocr", "models/PP-OCRv6_rec_small.onnx")
SILERO = ("silero_vad", "data/silero_vad.onnx")
SILERO_PART = ("silero_vad", "data/silero_vad_openvino_16k.onnx")
TASHKEEL = ("text2tashkeel", "models/rawi.int8.onnx")
WEBGPU, NXRT, OPENVINO = "WebGpuExecutionProvider", "cpu_ep", "OpenVINOExecutionProvider"
TENSORRT_RTX = "NvTensorRTRTXExecutionProvider"
TENSORRT_RTX_WHEEL = "onnxruntime-ep-nv-tensorrt-rtx-cu13"
WEBGPU_PLUGIN = "onnxruntime_ep_webgpu"


@frozen
class Row:
    """One state: how it is made, and what has to be said of it.

    Attributes:
        name: What it is called.
        ask: The function of ``answer.py`` to call.
        job: Its arguments.
        state: The state, error or diagnosis that has to come out.
        said: Words that have to stand in what is said, in this order.
        model: A wheel and the file in it, given to the function as ``model``.
        adapter: Whether WebGPU has its adapter in software: all of it, ``"driverless"`` for the
            variable alone, or none.
        packages: What is in the environment; this one if empty.
        uninstall: Which of them is taken away again.
        target: A wheel that is unpacked beside it, without what that asks for.
    """

    name: str
    ask: str
    job: dict[str, Any]
    state: str
    said: tuple[str, ...]
    model: tuple[str, str] | None = None
    adapter: str = ""
    packages: tuple[str, ...] = ()
    uninstall: str = ""
    target: str = ""
    key: str = field(init=False)

    @key.default
    def _key(self) -> str:
        provider = self.job.get("provider", "")
        model = Path(self.model[1]).stem if self.model else ""
        place = "built in" if self.packages == BUILT_IN else ""
        return " ".join(filter(None, (self.name, place, provider, model)))


def webgpu(name: str, nodes: str, model: tuple[str, str], state: str = "live") -> Row:
    job = {"provider": WEBGPU, "module": WEBGPU_PLUGIN}
    return Row(name, "opened", job, state, (nodes,), model, adapter="software")


def nxrt(name: str, nodes: str, model: tuple[str, str], state: str = "live") -> Row:
    job = {"provider": NXRT, "module": "nxrt_ep_cpu"}
    return Row(name, "opened", job, state, (nodes,), model)


def built_in(name: str, nodes: str, model: tuple[str, str], state: str = "live") -> Row:
    """OpenVINO inside a build of ONNX Runtime, which takes every CPU."""
    job = {"provider": OPENVINO, "options": {"device_type": "CPU"}}
    return Row(name, "opened", job, state, (nodes,), model, packages=BUILT_IN)


def on_plugin(name: str, ask: str, state: str, *said: str, **more: Any) -> Row:
    """OpenVINO's plug-in, which offers a device on Intel's CPUs only."""
    job = {"provider": OPENVINO, "module": "onnxruntime_ep_openvino", **more}
    return Row(name, ask, job, state, said, RECOGNISER)


IDLE = "takes none of the model's"
ROWS = [
    webgpu("live, whole graph", "67 of 67 nodes", SQUEEZENET),
    built_in("live, whole graph", "328 of 328 nodes", DETECTOR),
    built_in("live, whole graph", "94 of 94 nodes", MAGIKA),
    webgpu("live, partial", "109 of 125 nodes", RESNET),
    webgpu("live, partial", "92 of 94 nodes", MAGIKA),
    nxrt("live, partial", "16 of 36 nodes", SILERO_PART),
    built_in("live, partial", "21 of 24 nodes", TASHKEEL),
    nxrt("listed, zero nodes", f"{IDLE} 328 nodes", DETECTOR, "broken"),
    built_in("listed, zero nodes", f"{IDLE} 3 nodes", IRIS, "broken"),
    built_in(
        "the provider cannot compile the model",
        "broken; Exception while Loading Network for graph",
        SILERO,
        "broken",
    ),
    Row(
        "registered, no device",
        "probed",
        {"provider": WEBGPU, "module": WEBGPU_PLUGIN},
        "absent",
        ("registered, but it offers no device for the hardware here",),
    ),
    Row(
        "device listed, session fails",
        "probed",
        {"provider": WEBGPU, "module": WEBGPU_PLUGIN},
        "broken",
        ("libvulkan.so.1 cannot be loaded", "Failed to get a WebGPU adapter"),
        adapter="driverless",
    ),
    Row(
        "library misses a dependency",
        "probed",
        {"provider": "cuda_ep", "library": "nxrt_ep_cuda/*.so"},
        "broken",
        ("CUDA Driver library not found", "libcuda.so.1"),
        target="nxrt-ep-cuda==0.1.0.dev6",
    ),
    Row(
        "no hardware for it",
        "probed",
        {"provider": TENSORRT_RTX, "library": "*tensorrt_rtx*/lib*providers*.so"},
        "absent",
        ("there is no NVIDIA GPU here",),
        target=f"{TENSORRT_RTX_WHEEL}==0.5.0",
    ),
    Row(
        "plug-in too new for this runtime",
        "probed",
        {"provider": NXRT, "library": "nxrt_ep_cpu/*.so"},
        "version_mismatch",
        ("requested API version", "only API versions"),
        packages=OLD,
        target="nxrt-ep-cpu==0.1.0.dev6",
    ),
    Row(
        "asked by name and ignored",
        "diagnosed",
        {"provider": OPENVINO, "finding": "wrong-ep-device-or-option-dialect"},
        "wrong-ep-device-or-option-dialect",
        ("asked for by its name, which onnxruntime ignores",),
    ),
    Row(
        "option ignored",
        "opened",
        {"provider": WEBGPU, "module": WEBGPU_PLUGIN, "provider_options": {"bogus": "1"}},
        "ModelError",
        ("ignores the option 'bogus'",),
        SQUEEZENET,
        adapter="software",
    ),
    on_plugin(
        "reduced precision", "diagnosed", "reduced-precision", "bf16", finding="reduced-precision"
    ),
    Row(
        "reduced precision",
        "diagnosed",
        {
            "provider": OPENVINO,
            "options": {"device_type": "CPU", "precision": "ACCURACY"},
            "finding": "reduced-precision",
        },
        "reduced-precision",
        ("precision is ACCURACY",),
        packages=BUILT_IN,
    ),
    on_plugin("cache collision", "in_both_precisions", "live", "no NaN", "2 engines"),
    Row(
        "cache self-heal",
        "with_a_damaged_engine",
        {"provider": OPENVINO, "options": {"device_type": "CPU"}},
        "live",
        ("the same again",),
        RECOGNISER,
        packages=BUILT_IN,
    ),
    on_plugin("cache self-heal", "with_a_damaged_engine", "live", "the same again"),
    Row(
        "two distributions",
        "diagnosed",
        {"finding": "two-onnxruntime-packages"},
        "two-onnxruntime-packages",
        ("onnxruntime 1.32.0", "onnxruntime-openvino 1.24.1"),
        packages=BOTH,
    ),
    Row(
        "an emptied package",
        "diagnosed",
        {"finding": "two-onnxruntime-packages"},
        "two-onnxruntime-packages",
        ("empty package",),
        packages=BOTH,
        uninstall="onnxruntime-openvino",
    ),
    Row(
        "a device kept after its library was unregistered",
        "unregistered_meanwhile",
        {"provider": NXRT, "module": "nxrt_ep_cpu"},
        "live",
        ("asked for anew",),
    ),
]


def is_slow(row: Row) -> bool:
    # An environment of its own takes half a minute to make, that wheel as long to come, and a
    # driver in software as long to run the larger model.
    large = row.target.startswith(TENSORRT_RTX_WHEEL) or row.model == RESNET
    return large or bool(row.packages)


PARAMETERS = [
    pytest.param(row, id=row.key, marks=[pytest.mark.slow] if is_slow(row) else []) for row in ROWS
]


@pytest.fixture
def answer(
    environment_with: Callable[..., Any],
    our_packages: Path,
    request: pytest.FixtureRequest,
    tmp_path: Path,
) -> Callable[[Row], tuple[str, str]]:
    """Return a function that brings about a row's state and gives what is said of it."""

    def ask(row: Row) -> tuple[str, str]:
        python, path = sys.executable, list(filter(None, sys.path))
        if row.packages:
            made = environment_with(*row.packages)
            if row.uninstall:
                made = request.getfixturevalue("environment")
                made.pip("install", *row.packages)
                made.pip("uninstall", "--yes", row.uninstall)
            python, path = str(made.python), []
        if row.target:
            path.append(unpacked(row.target, tmp_path))
        job = {**row.job, "ask": row.ask}
        if row.model:
            job["model"] = model_file(*row.model)
        told = subprocess.run(
            [python, PROGRAM, json.dumps(job)],
            env={
                "PATH": os.defpath,
                "PYTHONPATH": os.pathsep.join([*path, str(our_packages)]),
                "DEVICECORE_CACHE_DIR": str(tmp_path / "cache"),
                **adapter(row, request),
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert told.returncode == 0, told.stderr
        assert told.stderr == ""
        state, said = json.loads(told.stdout)
        return state, said

    return ask


def adapter(row: Row, request: pytest.FixtureRequest) -> dict[str, str]:
    if row.adapter == "driverless":
        return {"ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER": "1"}
    if not row.adapter:
        return {}
    variables: dict[str, str] = request.getfixturevalue("swiftshader")
    return variables


def model_file(module: str, file: str) -> str:
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        pytest.skip(f"{module} is not installed: its wheel carries the model")
    return str(Path(spec.origin).parent / file)


def unpacked(wheel: str, folder: Path) -> str:
    """Return a folder with *wheel* in it, and nothing that it asks for."""
    target = folder / "wheel"
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    command = [*pip, "install", "--no-deps", "--target", str(target), wheel]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and "No matching distribution" in done.stderr:
        pytest.skip(f"pip finds no {wheel} here")
    assert done.returncode == 0, done.stderr
    return str(target)


@pytest.mark.parametrize("row", PARAMETERS)
def test_it_is_told(row: Row, answer: Callable[[Row], tuple[str, str]]) -> None:
    state, said = answer(row)
    if state == "skipped":
        pytest.skip(said)
    assert state == row.state, said
    assert _fits(row.said, said), said
    # What is said fits no other state: this is what tells the states apart.
    assert {each.name for each in ROWS if each.state == state and _fits(each.said, said)} == {
        row.name
    }


def _fits(words: tuple[str, ...], said: str) -> bool:
    rest = said
    for each in words:
        _, found, rest = rest.partition(each)
        if not found:
            return False
    return True


def test_no_two_states_are_told_in_the_same_words() -> None:
    told: dict[tuple[str, str], set[str]] = {}
    for row in ROWS:
        told.setdefault((row.state, _without_numbers(row.said)), set()).add(row.name)
    assert [names for names in told.values() if len(names) > 1] == []
    assert len({row.name for row in ROWS}) == 17


def _without_numbers(said: tuple[str, ...]) -> str:
    text = " ".join(said)
    if nodes := re.fullmatch(r"(\d+) of (\d+) nodes", text):
        return "all nodes" if nodes[1] == nodes[2] else "some nodes"
    return re.sub(r"\d+", "N", text)
