"""Tensors of other frameworks: moved by them, converted, and left alone where they lie nowhere."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from devicecore import tensors_to_device
from devicecore.device import Device
from devicecore.errors import TransferError
from devicecore.optional import installed
from tests.scope.conftest import load_fake_device

torch = pytest.importorskip("torch")

NPU = Device("/device:NPU:0", device_class="NPU")
ROOT = Path(__file__).parents[2]


def run(code: str, needs: str, **variables: str) -> None:
    """Run code in a process of its own: frameworks do not all like to be in one."""
    if not installed(needs):
        pytest.skip(f"{needs} is not installed here; `make test-frameworks` has it")
    path = [str(ROOT), str(ROOT / "factories"), *sys.path]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", f"import sys; sys.path[:] = {path!r}\n{code}"],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_jax() -> None:
    code = """
import jax, jax.numpy as jnp, numpy as np, torch
from devicecore import as_tensor, tensors_to_device, to_numpy
from devicecore.device import Device
from devicecore.errors import NotLiveError
first, second = jax.local_devices()
here, there = jax.device_put(jnp.ones(3), first), jax.device_put(jnp.zeros(3), second)
value = {"a": here, "b": [here]}
assert tensors_to_device(value, "cpu") is value
moved = tensors_to_device({"a": here, "b": [there, there]}, "cpu")
assert moved["a"] is here
assert moved["b"][0].devices() == {first} and moved["b"][0] is moved["b"][1]
assert there.devices() == {second}
assert jax.jit(lambda x: tensors_to_device([x], "cpu")[0] + 1)(here).tolist() == [2, 2, 2]
try:
    tensors_to_device({"a": here}, Device("/device:NPU:0", device_class="NPU"))
except NotLiveError as error:
    assert "JAX" in str(error) and "data['a']" in error.__notes__[0]
else:
    raise AssertionError
tensor = as_tensor(here, "cpu")
tensor += 1
assert here.tolist() == [1, 1, 1] and tensor.tolist() == [2, 2, 2]
array = to_numpy(here)
assert not array.flags.writeable and array.tolist() == [1, 1, 1]
low = jnp.ones(3, jnp.bfloat16)
assert as_tensor(low, "cpu").dtype == torch.bfloat16
assert to_numpy(low).dtype.name == "bfloat16"
assert as_tensor(jnp.array([True, False]), "cpu").tolist() == [True, False]
"""
    run(code, "jax", XLA_FLAGS="--xla_force_host_platform_device_count=2", JAX_PLATFORMS="cpu")


def test_jax_without_torch() -> None:
    """Nothing of JAX stays where it is in silence; where it has several hosts, each is one."""
    code = """
sys.modules["torch"] = None
import jax, jax.numpy as jnp
from devicecore import device_scope, tensors_to_device
from devicecore.errors import DeviceError, InvalidDeviceNameError, UnknownDeviceError
first, second = jax.local_devices()
value = {"a": jax.device_put(jnp.ones(2), first), "b": 1}
for device in ("cuda:0", "gpu", "cpu:7", "tensorrt:0"):
    try:
        tensors_to_device(value, device)
    except (DeviceError, UnknownDeviceError):
        pass
    else:
        raise AssertionError(device)
    assert tensors_to_device([1, "a"], device) == [1, "a"]
try:
    tensors_to_device([1], "cdua:0")
except InvalidDeviceNameError:
    pass
else:
    raise AssertionError
with device_scope("cpu:1") as scope:
    for device in ("cpu:1", scope, second, "cpu"):
        assert tensors_to_device(value, device)["a"].devices() == {second}, device
    assert tensors_to_device(value, "cpu:0") is value
assert tensors_to_device(value, "cpu") is value
moved = tensors_to_device(value, "cpu:1")
assert tensors_to_device(moved, "cpu:1") is moved and moved["a"].devices() == {second}
assert tensors_to_device(moved, "cpu:0")["a"].devices() == {first}
"""
    run(code, "jax", XLA_FLAGS="--xla_force_host_platform_device_count=2", JAX_PLATFORMS="cpu")


def test_tensorflow() -> None:
    code = """
import tensorflow as tf, numpy as np, torch
from devicecore import as_tensor, tensors_to_device, to_numpy
from devicecore.device import Device
from devicecore.errors import NotLiveError
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
here = tf.ones(3)
with tf.device("CPU:1"):
    there = tf.zeros(3) + 0
assert there.device.endswith("CPU:1"), there.device
value = {"a": here}
assert tensors_to_device(value, "cpu") is value
moved = tensors_to_device([here, there], "cpu")
assert moved[0] is here and moved[1].device.endswith("CPU:0"), moved[1].device
moved = tensors_to_device([here, there, torch.ones(1)], "cpu:1")
assert moved[1] is there and moved[0].device.endswith("CPU:1"), moved[0].device
assert moved[2].device.type == "cpu"
try:
    tensors_to_device({"a": here}, Device("/device:NPU:0", device_class="NPU"))
except NotLiveError as error:
    assert "TensorFlow" in str(error) and "data['a']" in error.__notes__[0]
else:
    raise AssertionError
assert tf.function(lambda x: tensors_to_device([x], "cpu")[0] + 1)(here).numpy().tolist() == [2] * 3
tensor = as_tensor(here, "cpu")
tensor += 1
assert here.numpy().tolist() == [1, 1, 1] and tensor.tolist() == [2, 2, 2]
assert to_numpy(here).tolist() == [1, 1, 1]
assert as_tensor(tf.ones(2, tf.bfloat16), "cpu").dtype == torch.bfloat16
"""
    run(code, "tensorflow", TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")


def test_paddle() -> None:
    code = """
import paddle, numpy as np, torch
from devicecore import as_tensor, tensors_to_device, to_numpy
from devicecore.device import Device
from devicecore.errors import DeviceCoreError
paddle.set_device("cpu")
here = paddle.ones([3])
value = {"a": here}
assert tensors_to_device(value, "cpu") is value
try:
    tensors_to_device({"a": here}, Device("/device:NPU:0", device_class="NPU"))
except DeviceCoreError as error:
    assert "data['a']" in str(error) + str(getattr(error, "__notes__", ""))
else:
    raise AssertionError
tensor = as_tensor(here, "cpu")
assert tensor.tolist() == [1, 1, 1]
tensor += 1
assert here.tolist() == [2, 2, 2]  # shared, as Paddle's tensors may change
here.stop_gradient = False
assert as_tensor(here, "cpu").tolist() == [2, 2, 2]
assert to_numpy(here).tolist() == [2, 2, 2]
for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float16", "bool", "int64", "complex64"):
    value = paddle.ones([2, 3]).astype(name)
    array = to_numpy(value)
    assert array.dtype.name == name, (name, array.dtype)
    assert array.shape == (2, 3) and array.astype("float32").sum() == 6, array
    assert str(as_tensor(value, "cpu").dtype) == f"torch.{name}"
sys.modules["ml_dtypes"] = None
from devicecore.errors import MissingDependencyError
try:
    to_numpy(paddle.ones([2]).astype("bfloat16"))
except MissingDependencyError as error:
    assert "ml_dtypes" in str(error)
else:
    raise AssertionError
"""
    run(code, "paddle")


def test_paddle_on_hardware_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paddle's names of types count case, ours do not."""
    if not installed("paddle"):
        pytest.skip("paddle is not installed here; `make test-frameworks` has it")
    monkeypatch.setenv("CUSTOM_DEVICE_ROOT", str(tmp_path))
    load_fake_device(tmp_path)
    code = """
import paddle
from devicecore import device_scope, tensors_to_device
paddle.set_device("cpu")
here = {"a": paddle.ones([3])}
for device in ("custom_cpu:2", "CUSTOM_CPU:2", paddle.CustomPlace("custom_cpu", 2)):
    moved = tensors_to_device(here, device)
    assert str(moved["a"].place) == "Place(custom_cpu:2)", moved["a"].place
    assert tensors_to_device(moved, device) is moved
assert tensors_to_device(moved, "cpu")["a"].place.is_cpu_place()
with device_scope("custom_cpu:1"):
    assert str(tensors_to_device(here, "custom_cpu")["a"].place) == "Place(custom_cpu:1)"
"""
    run(code, "paddle", CUSTOM_DEVICE_ROOT=str(tmp_path))


def test_values_of_onnx_runtime() -> None:
    ort = pytest.importorskip("onnxruntime")
    value = [ort.OrtValue.ortvalue_from_numpy(np.ones(3, np.float32))]
    assert tensors_to_device(value, "cpu") is value
    with pytest.raises(TransferError, match=r"data\[0\] cannot be moved"):
        tensors_to_device(value, NPU)


def test_transformers() -> None:
    code = """
import torch
from devicecore import tensors_to_device
from transformers import BatchEncoding, BatchFeature
from transformers.cache_utils import DynamicCache
from transformers.modeling_outputs import BaseModelOutput
encoding = BatchEncoding({"ids": torch.ones(2), "deep": [{"x": torch.ones(1)}], "text": "t"})
moved = tensors_to_device(encoding, "meta")
assert type(moved) is BatchEncoding and moved["text"] == "t"
assert moved.ids.device.type == moved["deep"][0]["x"].device.type == "meta"
assert encoding["ids"].device.type == encoding["deep"][0]["x"].device.type == "cpu"
assert tensors_to_device(encoding, "cpu") is encoding
feature = tensors_to_device(BatchFeature({"x": [torch.ones(1)]}), "meta")
assert type(feature) is BatchFeature and feature["x"][0].device.type == "meta"
output = BaseModelOutput(last_hidden_state=torch.ones(1), hidden_states=(torch.ones(1),))
moved = tensors_to_device(output, "meta")
assert type(moved) is BaseModelOutput
assert moved.last_hidden_state is moved["last_hidden_state"] is moved[0]
assert moved.last_hidden_state.device.type == moved.hidden_states[0].device.type == "meta"
assert output.last_hidden_state.device.type == "cpu"
cache = DynamicCache()
cache.update(torch.ones(1, 1, 2, 4), torch.ones(1, 1, 2, 4), 0)
moved = tensors_to_device({"past": cache}, "meta")["past"]
assert type(moved) is DynamicCache
assert moved.layers[0].keys.device.type == moved.layers[0].values.device.type == "meta"
assert moved.layers[0].device.type == "meta"
assert cache.layers[0].keys.device.type == cache.layers[0].device.type == "cpu"
assert moved.get_seq_length() == 2
assert tensors_to_device(cache, "cpu") is cache
"""
    run(code, "transformers")


class LayerLike:
    """Looks like a layer of transformers' caches: a plain object that notes its device."""

    def __init__(self) -> None:
        self.keys = torch.ones(2)
        self.values = torch.ones(2)
        self.device = self.keys.device


class CacheLike:
    """Looks like transformers' DynamicCache."""

    def __init__(self) -> None:
        self.layers = [LayerLike()]


def test_a_cache_of_keys_and_values_without_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    fake: Any = types.ModuleType("transformers.cache_utils")
    fake.Cache, fake.CacheLayerMixin = CacheLike, LayerLike
    monkeypatch.setitem(sys.modules, "transformers.cache_utils", fake)
    cache = CacheLike()
    moved = tensors_to_device({"past": cache}, "meta")["past"]
    assert type(moved) is CacheLike
    layer = moved.layers[0]
    assert {each.type for each in (layer.keys.device, layer.device)} == {"meta"}
    assert cache.layers[0].device.type == cache.layers[0].keys.device.type == "cpu"
    assert tensors_to_device(cache, "cpu") is cache


class ForeignArray:
    """Looks like an array of CuPy on one GPU; the module below is what it pretends to be in."""

    def __init__(self, device: int) -> None:
        self.device = type("Device", (), {"id": device})()


def test_cupy_has_no_arrays_on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    fake: Any = types.ModuleType("cupy")
    fake.ndarray = ForeignArray
    monkeypatch.setitem(sys.modules, "cupy", fake)
    with pytest.raises(TransferError, match=r"data\[1\] .*CuPy has no arrays on cpu"):
        tensors_to_device([0, ForeignArray(0)], "cpu")
