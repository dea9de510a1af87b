"""What options say is taken in any case, and refused where it means nothing."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from devicecore.device_factory import DeviceOptions, FactoryRegistry, Registration
from devicecore.device_factory.option_checks import checked
from devicecore.device_mgr import DeviceMgr
from devicecore.errors import NotLiveError, UnknownDeviceError

if TYPE_CHECKING:
    from collections.abc import Iterator

TYPES = frozenset({"CPU", "CUDA"})


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        (("pytorch",), ("torch",)),
        (("Torch",), ("torch",)),
        (("ONNX", "onnxruntime", "PyTorch"), ("onnx", "torch")),
        ((), ()),
        ("torch", ("torch",)),
        ("PyTorch", ("torch",)),
    ],
)
def test_frameworks_are_taken_in_any_case(asked: tuple[str, ...], meant: tuple[str, ...]) -> None:
    assert checked(DeviceOptions(frameworks=asked), TYPES).frameworks == meant


def test_an_unknown_framework_is_refused_with_the_near_one() -> None:
    with pytest.raises(ValueError, match=r"'troch'.*did you mean 'torch'"):
        checked(DeviceOptions(frameworks=("troch",)), TYPES)


@pytest.mark.parametrize(
    "options",
    [
        {"device_count": {"cpu": 1, "CPU": 2}},
        {"visible": {"Cuda": (0,), "CUDA": (1,), "CPU": (0,)}},
    ],
)
def test_a_type_that_is_named_twice_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="mean the same; name it once"):
        checked(DeviceOptions(**options), TYPES)


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"device_count": {"CPU": np.array([2])}}, TypeError, r"device_count\['CPU'\] is array"),
        ({"device_count": {"CPU": np.bool_(True)}}, TypeError, r"device_count\['CPU'\] is "),
        ({"device_count": {"CPU": np.int8(-1)}}, ValueError, r"device_count\['CPU'\] is -1"),
        ({"visible": {"CUDA": np.array([True])}}, TypeError, r"an index in visible\['CUDA'\] is "),
        ({"visible": {"CUDA": np.array([[0]])}}, TypeError, r"an index in visible\['CUDA'\] is "),
        ({"visible": {"CUDA": np.array([0.5])}}, TypeError, r"an index in visible\['CUDA'\] is "),
        ({"memory_limit": np.float32(2)}, TypeError, "it is a whole number from 1, or None"),
        ({"frameworks": [3]}, TypeError, "a name in frameworks is 3; it is a text"),
        ({"frameworks": None}, TypeError, "frameworks is None; it is a list of names"),
        ({"filters": "cuda"}, TypeError, r"give a list: \['cuda'\]"),
        ({"filters": [None]}, TypeError, "a name in filters is None; it is a text"),
        ({"device_count": {1: 2}}, TypeError, "device_count has the key 1; keys are texts"),
        ({"device_count": 3}, TypeError, "device_count is 3; it is a mapping such as"),
        ({"device_count": {"CPU": "3"}}, TypeError, r"device_count\['CPU'\] is '3'; it is a whole"),
        ({"device_count": {"CPU": True}}, TypeError, r"device_count\['CPU'\] is True"),
        ({"device_count": {"CPU": -1}}, ValueError, r"device_count\['CPU'\] is -1; .* from 0"),
        ({"visible": {"CUDA": 0}}, TypeError, r"visible\['CUDA'\] is 0; it is a list of indices"),
        ({"visible": {"CUDA": "0"}}, TypeError, "it is a list of indices"),
        ({"visible": {"CUDA": ["a"]}}, TypeError, r"an index in visible\['CUDA'\] is 'a'"),
        ({"visible": {"CUDA": (0, -1)}}, ValueError, r"an index in visible\['CUDA'\] is -1; .* 0"),
        ({"visible": {"CUDA": (True,)}}, TypeError, r"an index in visible\['CUDA'\] is True"),
        ({"visible": {"CUDA": iter((0,))}}, TypeError, "it is a list of indices"),
        ({"visible": ["CUDA"]}, TypeError, "visible is .*; it is a mapping such as"),
        ({"threads": 0}, ValueError, "threads is 0; it is a whole number from 1, or None"),
        ({"threads": 2.5}, TypeError, "threads is 2.5; it is a whole number from 1, or None"),
        ({"memory_limit": "1 GB"}, TypeError, "memory_limit is '1 GB'; it is a whole number"),
    ],
)
def test_a_value_of_a_wrong_kind_is_one_sentence(
    options: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said) as caught:
        DeviceOptions(**options)
    assert "Attribute(" not in str(caught.value)
    assert len(str(caught.value)) < 200


def test_lists_are_taken_as_tuples() -> None:
    asked = DeviceOptions(frameworks=["PyTorch"], filters=["cuda:1"], visible={"CUDA": [0]})
    assert asked.frameworks == ("torch",)
    assert asked.filters == ("cuda:1",)
    assert hash(asked) == hash(DeviceOptions(frameworks=("torch",), filters=("cuda:1",)))


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"device_count": {"cpu": np.int64(2)}}, {"cpu": 2}),
        ({"visible": {"cuda": np.array([0, 1])}}, {"cuda": (0, 1)}),
        ({"visible": {"cuda": [np.uint8(1)]}}, {"cuda": [1]}),
        ({"memory_limit": np.uint64(1 << 40)}, 1 << 40),
        ({"threads": np.array(3)}, 3),
    ],
)
def test_whole_numbers_of_numpy_are_ints(given: dict[str, Any], meant: object) -> None:
    (name,) = given
    taken = getattr(DeviceOptions(**given), name)
    assert repr(taken) == repr(meant)


@pytest.fixture(scope="module")
def only_host() -> Iterator[DeviceMgr]:
    with closing(DeviceMgr.create(DeviceOptions(device_count={"GPU": 0, "NPU": 0}))) as manager:
        yield manager


@pytest.mark.parametrize("framework", [1, 0, np, ["torch"]])
@pytest.mark.parametrize("name", ["cpu", "CPU:0", "/device:cpu:0", "GPU"])
def test_a_framework_that_is_no_text_is_one_error(
    name: str, framework: Any, only_host: DeviceMgr
) -> None:
    with pytest.raises(ValueError, match=r"the framework is .*; there are 'onnx' and 'torch'"):
        only_host.lookup_device(name, framework)


@pytest.mark.parametrize("name", ["NPU", "npu:0", "GPU"])
def test_a_family_without_devices_has_its_article(name: str, only_host: DeviceMgr) -> None:
    with pytest.raises(UnknownDeviceError) as raised:
        only_host.lookup_device(name)
    assert f"no device here is {'a GPU' if name == 'GPU' else 'an NPU'}" in str(raised.value)


@pytest.mark.parametrize("shown", [(0, 2), [1], range(3), {0}, ()])
def test_indices_may_be_any_collection(shown: Any) -> None:
    assert DeviceOptions(visible={"cuda": shown}).visible == {"cuda": shown}


@pytest.mark.parametrize("key", ["CPU", "cpu", "CPUExecutionProvider"])
def test_a_host_that_is_counted_out_is_missed_with_the_option(key: str) -> None:
    with pytest.raises(NotLiveError) as raised:
        DeviceMgr.create(DeviceOptions(device_count={key: 0}))
    assert raised.value.state == "excluded"
    assert "device_count={'CPU': 0} leaves none" in str(raised.value)


def test_a_gpu_that_is_hidden_is_missed_with_the_option() -> None:
    registry = FactoryRegistry()
    registry.register(Registration("FAKE", "devicecore.testing:FakeFactory", 0, "test", "FAKE"))
    options = DeviceOptions(visible={"FAKE": (700,)})
    with pytest.raises(NotLiveError, match=r"visible=\{'FAKE': \(700,\)\} leaves none"):
        registry.new_device("FAKE", options, "/job:a/replica:0/task:0")
