"""Frameworks that come while a scope is open or before it, each in a process of its own."""

from __future__ import annotations

import pytest

from devicecore.optional import installed
from tests.scope.conftest import in_child

pytestmark = pytest.mark.skipif(not installed("torch"), reason="torch is not installed here")


def test_a_name_given_to_privateuse1() -> None:
    """torch gives the name only, no operations: what counts is where its factories are sent."""
    code = """
from devicecore import device_scope
scope = device_scope("my_npu:3")
import torch
try:
    with scope: said = "entered"
except LookupError as error: said = str(error)
torch.utils.rename_privateuse1_backend("my_npu")
with scope as device:
    with device_scope("my_npu") as same:
        now = str(torch._C._get_function_stack_at(0).device)
with device_scope(torch.device("my_npu:3")) as again:
    with device_scope("MY_NPU:3") as upper:
        same = same is again is upper is device
try:
    with device_scope("my_npu:128"): pass
except LookupError: beyond = True
print(json.dumps([said, device.name, same, now, beyond, device.device_class]))
"""
    said, name, same, now, beyond, device_class = in_child(code)
    assert "no device is called" in said
    assert (name, same, now, beyond) == ("/device:my_npu:3", True, "my_npu:3", True)
    assert device_class == "NPU"


def test_a_framework_imported_inside_follows_at_once() -> None:
    code = """
from devicecore import Device, current_device, device_scope
outer = device_scope(Device("/device:OTHER:0", torch_device="cpu:0"))
with outer:
    with device_scope(Device("/device:NPU:0", torch_device="meta")):
        assert "torch" not in sys.modules
        import torch
        inside = str(torch.zeros(1).device)
    between = str(torch.get_default_device())
after = str(torch.zeros(1).device)
loader = type(torch.__spec__.loader).__name__
print(json.dumps([inside, between, after, loader, torch._C._len_torch_function_stack()]))
"""
    assert in_child(code) == ["meta", "cpu:0", "cpu", "SourceFileLoader", 0]


def test_a_framework_imported_inside_that_cannot_follow_is_a_warning() -> None:
    code = """
import warnings
from devicecore import Device, device_scope
with device_scope(Device("/device:NPU:0"), frameworks="torch"), device_scope("cpu"):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        import torch
    with device_scope("meta"):
        inside = str(torch.zeros(1).device)
said = [str(each.message) for each in caught if each.category is RuntimeWarning]
print(json.dumps([said, inside, str(torch.zeros(1).device)]))
"""
    said, inside, after = in_child(code)
    assert [text for text in said if "cannot follow it: NPU:0 for torch is absent" in text]
    assert (inside, after) == ("meta", "cpu")


def test_a_framework_that_is_half_imported_waits_until_it_is_whole() -> None:
    """Nobody may touch it before; one whose import is forbidden is not there at all."""
    code = """
import types
from importlib.machinery import ModuleSpec
from devicecore import device_scope
from devicecore.scope.adapters import adapters
sys.modules["jax"] = None
cupy = types.ModuleType("cupy")
cupy.__spec__ = ModuleSpec("cupy", None)
cupy.__spec__._initializing = True
sys.modules["cupy"] = cupy
seen = []
def look():
    with device_scope("cpu"):
        seen.append([adapter.title for adapter in adapters()])
look()
cupy.ndarray = type("ndarray", (), {})
cupy.cuda = types.SimpleNamespace(
    runtime=types.SimpleNamespace(getDevice=None, setDevice=None, getDeviceCount=None)
)
cupy.__spec__._initializing = False
look()
print(json.dumps(seen))
"""
    assert in_child(code) == [[], ["CuPy"]]


def test_a_broken_framework_breaks_no_scope() -> None:
    code = """
import types, warnings
from importlib.machinery import ModuleSpec
from devicecore import device_scope
torch = types.ModuleType("torch")
torch.__spec__ = ModuleSpec("torch", None)
torch.Tensor, torch.device = type("Tensor", (), {}), type("device", (), {})
torch._C = types.SimpleNamespace(_len_torch_function_stack=None)  # and nothing else
sys.modules |= {"torch": torch, "torch._C": torch._C}
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for _ in range(2):
        with device_scope("cpu", frameworks="torch") as device: pass
print(json.dumps([device.name[-5:], [str(each.message) for each in caught]]))
"""
    name, (said,) = in_child(code)
    assert name == "CPU:0"
    assert said.startswith("no device scope can set the default device of this torch")


def test_a_scope_imports_no_framework() -> None:
    code = """
from devicecore import device_scope
with device_scope("cpu"): pass
frameworks = {"torch", "jax", "tensorflow", "paddle", "cupy", "numpy"}
print(json.dumps(sorted(frameworks & set(sys.modules))))
"""
    assert in_child(code) == []
