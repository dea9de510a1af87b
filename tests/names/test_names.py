"""Device names: what is read, what is refused and how that is said."""

from __future__ import annotations

import pytest

from devicecore.errors import IncompatibleNamesError, InvalidDeviceNameError
from devicecore.names import (
    DEVICE_CLASSES,
    DEVICE_TYPES,
    PROVIDER_TYPES,
    DeviceName,
    canonical_type,
)

# Where TensorFlow's C++ library and its Python class disagree, this is what ours do.
READ = {
    "": "",
    "/": "",
    "/device:gpu:0": "/device:GPU:0",
    "/device:GPU": "/device:GPU:*",
    "/device:MyNPU": "/device:MyNPU:*",
    "/gpu": "/device:GPU:*",
    "cpu": "/device:CPU:*",
    "GPU:0": "/device:GPU:0",
    "/Gpu:0": "/device:GPU:0",
    "/job:*": "",
    "/task:*": "",
    "/replica:*": "",
    "/device:*": "",
    "/device:*:*": "",
    "/device:*:3": "/device:*:3",
    "cuda": "/device:CUDA:*",
    "cuda:1": "/device:CUDA:1",
    "mps:0": "/device:MPS:0",
    "gpu:*": "/device:GPU:*",
    "CUDAExecutionProvider": "/device:CUDA:*",
    "/job:worker/replica:0/task:3/device:GPU:2": "/job:worker/replica:0/task:3/device:GPU:2",
    "/device:GPU:2/task:3/job:worker/replica:0": "/job:worker/replica:0/task:3/device:GPU:2",
    "/device:GPU:007": "/device:GPU:7",
    "/device:GPU:2147483647": "/device:GPU:2147483647",
    "/device:" + "X" * 245 + ":0": "/device:" + "X" * 245 + ":0",
}
# The text, where it goes wrong, and a word of the reason.
REFUSED = {
    "/job:123": (5, "letter"),
    "/job:a-b": (0, "part"),
    "/job:a.b": (0, "part"),
    "/job:": (0, "part"),
    "/job:a/": (6, "slash"),
    "/job: a": (0, "blank"),
    "/job:é": (0, "part"),
    "/job:_a": (5, "letter"),
    "/job:a/job:b": (6, "twice"),
    "/job:a:b": (0, "part"),
    "/job:a//task:1": (6, "part"),
    "/job": (0, "value"),
    "/task:-1": (0, "part"),
    "/task:+1": (0, "part"),
    "/task: 1": (0, "blank"),
    "/task:1 ": (0, "blank"),
    "/task:1_0": (6, "whole number"),
    "/task:1:2": (8, "one value"),
    "/task:\u0661": (0, "part"),
    "/device:GPU:-1": (0, "part"),
    "/device:GPU:2147483648": (12, "2147483647"),
    "/device:GPU:" + "9" * 200: (12, "2147483647"),
    "/device:GPU:0/cpu:0": (13, "twice"),
    "/device::0": (0, "part"),
    "/device:A-B:0": (0, "part"),
    "/device:9A:0": (8, "letter"),
    "/device:OPENVINO.GPU:0": (0, "part"),
    "/banana:0": (1, "banana"),
    "/gpu:0:1": (1, "known type"),
    "/gpu:x": (5, "whole number"),
    "//": (0, "slash"),
    "banana": (0, "unknown device type"),
    "GPU 0": (0, "blank"),
    "GPU:-1": (0, "neither"),
    "x" * 257: (256, "longer"),
}


@pytest.mark.parametrize("text", READ, ids=lambda text: repr(text)[:40])
def test_what_is_read(text: str) -> None:
    assert str(DeviceName.parse(text)) == READ[text]


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: ascii(text)[:40])
def test_what_is_refused_and_where(text: str) -> None:
    position, word = REFUSED[text]
    with pytest.raises(InvalidDeviceNameError) as caught:
        DeviceName.parse(text)
    assert (caught.value.text, caught.value.position) == (text, position)
    assert word in caught.value.reason


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (" cuda:0", "cuda:0"),
        ("/job:a/", "/job:a"),
        ("device:GPU:0", "/device:GPU:0"),
        ("/JOB:a/Device:GPU:0", "/job:a/device:GPU:0"),
        ("gpu1", "gpu:1"),
        ("cud", "CUDA"),
        ("cudaa:3", "CUDA:3"),
        ("/openvin:1", "OPENVINO:1"),
        ("banana split", ""),
    ],
)
def test_a_near_name_is_suggested(text: str, meant: str) -> None:
    with pytest.raises(InvalidDeviceNameError) as caught:
        DeviceName.parse(text)
    assert caught.value.suggestion == meant
    assert ("did you mean" in str(caught.value)) == bool(meant)


@pytest.mark.parametrize("text", [None, 3, b"GPU:0", ["GPU:0"]])
def test_what_is_no_text_is_refused(text: object) -> None:
    with pytest.raises((InvalidDeviceNameError, TypeError)):
        DeviceName.parse(text)  # type: ignore[arg-type]


def test_an_unknown_dialect_is_named() -> None:
    with pytest.raises(ValueError, match="klingon"):
        DeviceName.parse("GPU:0", dialect="klingon")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "fields",
    [
        {"job": "a b"},
        {"job": ""},
        {"job": 5},
        {"replica": -1},
        {"task": True},
        {"task": 1.0},
        {"index": 2**31},
        {"index": "0"},
        {"device_type": "a/b"},
        {"device_type": "*"},
        {"device_type": 7},
        {"job": "a" * 200, "device_type": "b" * 200},
    ],
    ids=str,
)
def test_the_constructor_refuses_what_could_not_be_parsed_back(fields: dict[str, object]) -> None:
    with pytest.raises(InvalidDeviceNameError):
        DeviceName(**fields)  # type: ignore[arg-type]


def test_a_name_is_a_value() -> None:
    name = DeviceName.parse("/job:w/replica:0/task:1/device:CUDA:2")
    assert name == DeviceName("w", 0, 1, "cuda", 2)
    assert len({name, DeviceName("w", 0, 1, "CUDA", 2)}) == 1
    assert name.is_complete
    assert not name.local.is_complete
    assert str(name.local) == "/device:CUDA:2"
    assert name.with_index(5).index == 5
    assert name.with_index(None).index is None
    with pytest.raises(InvalidDeviceNameError):
        name.with_index(-1)
    with pytest.raises(AttributeError):
        name.index = 3  # type: ignore[misc]


def test_an_absent_index_stays_absent() -> None:
    assert DeviceName.parse("cuda").index is None
    assert DeviceName.parse("cuda") != DeviceName.parse("cuda:0")


def test_aliases_are_those_of_tensorflow() -> None:
    complete = DeviceName("w", 0, 1, "MyNPU", 2)
    assert complete.aliases == (
        "/job:w/replica:0/task:1/device:MyNPU:2",
        "/job:w/replica:0/task:1/mynpu:2",
        "/device:MyNPU:2",
        "MyNPU:2",
    )
    assert complete.local.aliases == ("/device:MyNPU:2", "MyNPU:2")
    assert DeviceName("w", device_type="GPU").aliases == ()
    assert DeviceName("w", index=1).aliases == ()


@pytest.mark.parametrize(
    ("left", "right", "part"),
    [
        ("/job:a", "/job:b", "job"),
        ("/replica:1", "/replica:2", "replica"),
        ("/task:1", "/task:2", "task"),
        ("/device:GPU:0", "/device:CPU:0", "device_type"),
        ("/device:GPU:0", "/device:GPU:1", "index"),
    ],
)
def test_a_strict_merge_names_the_part(left: str, right: str, part: str) -> None:
    with pytest.raises(IncompatibleNamesError) as caught:
        DeviceName.parse(left).merge(DeviceName.parse(right))
    assert caught.value.part == part
    lenient = part in ("device_type", "index")
    for conflicts in ("soft", "override"):
        if lenient:
            DeviceName.parse(left).merge(DeviceName.parse(right), conflicts)
        else:
            with pytest.raises(IncompatibleNamesError):
                DeviceName.parse(left).merge(DeviceName.parse(right), conflicts)


def test_our_types_are_upper_cased_and_no_others() -> None:
    for known in DEVICE_TYPES | DEVICE_CLASSES:
        assert canonical_type(known.lower()) == known
    assert canonical_type("MyNPU") == "MyNPU"
    assert set(PROVIDER_TYPES.values()) - {"DML", "QNN"} <= DEVICE_TYPES  # known, without a factory


def test_names_are_compared_with_texts_too() -> None:
    name = DeviceName.parse("GPU:0")
    assert name.matches("gpu")
    assert not name.matches("cpu:0")
    assert DeviceName.parse("gpu").is_specified_by("GPU:3")
    assert name.merge("/job:a") == name.fill("/job:a") == DeviceName.parse("/job:a/device:GPU:0")
    for ask in (name.matches, name.is_specified_by, name.merge, name.fill):
        for wrong in ("a b", 3, None):
            with pytest.raises(InvalidDeviceNameError):
                ask(wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="conflicts is 'x'; it can be 'error', 'soft', 'override'"):
        name.merge("CPU:0", conflicts="x")  # type: ignore[arg-type]
