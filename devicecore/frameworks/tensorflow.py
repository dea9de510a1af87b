"""TensorFlow: its tensors, its devices, and the device of a thread's eager operations."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any, ClassVar

from devicecore.errors import ScopeError
from devicecore.frameworks.base.adapter import Adapter, Context
from devicecore.frameworks.base.dlpack import tensor_from_numpy
from devicecore.frameworks.base.framework import Framework
from devicecore.frameworks.base.leaf import OneByOne, absent, place_of
from devicecore.names import DeviceName

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from devicecore.device import Device
    from devicecore.frameworks.base.leaf import LeafKind
    from devicecore.transfer.request import Request
    from devicecore.transfer.target import Target

_TYPES = {"CUDA": "GPU", "ROCM": "GPU"}


class TensorFlowDefault(Adapter):
    """Enters a fresh ``tf.device`` each time, for a device that TensorFlow really lists.

    It would place work silently on the CPU otherwise. What is saved is the place before, and the
    contexts to leave, the last one first: TensorFlow insists on that order.
    """

    title: ClassVar[str] = "TensorFlow"
    frameworks: ClassVar[frozenset[str]] = frozenset({"tensorflow"})

    def __init__(self, tensorflow: ModuleType) -> None:
        self._tensorflow: Any = tensorflow
        self._here = threading.local()

    def place_of(self, device: Device) -> Any:
        """Return TensorFlow's name of *device*, such as ``"/device:GPU:1"``."""
        if not device.is_local:
            raise self.refusal(device, "it is not in this process")
        place = _place(device.memory_device.parsed_name)
        listed = self._listed()
        if place in listed:
            return place
        raise self.refusal(device, f"TensorFlow lists {', '.join(listed)}")

    def _listed(self) -> list[str]:
        return [device.name for device in self._tensorflow.config.list_logical_devices()]

    def knows(self, name: DeviceName) -> bool:
        """Return whether TensorFlow lists a device of that name."""
        return _place(name) in self._listed()

    def save(self, place: str) -> Any:
        """Return the place before, and the context to enter."""
        before = getattr(self._here, "place", None)
        if place != before and self._tensorflow.inside_function():
            msg = f"TensorFlow is tracing a function, and may ignore the scope of {place}"
            raise ScopeError(
                msg,
                "a traced function runs on the device of the scope around its call",
                "enter the scope outside of tf.function",
            )
        return (before, (Context(self._tensorflow.device(place)),))

    def set(self, place: str, saved: Any) -> None:
        """Make *place* the device of eager operations."""
        self._here.place = place
        for context in saved[1]:
            context.enter()

    def leave(self, saved: Any) -> None:
        """Leave the contexts."""
        before, contexts = saved
        self._here.place = before
        for context in contexts:
            context.leave()

    def join(self, upper: Any, lower: Any) -> Any:
        """Return the contexts of both, and the older place."""
        return (lower[0], upper[1] + lower[1])


def _place(name: DeviceName) -> str:
    device_type = (name.device_type or "").upper()
    return f"/device:{_TYPES.get(device_type, device_type)}:{name.index or 0}"


class TensorFlowTensors(OneByOne):
    """Eager tensors of TensorFlow; symbolic ones lie nowhere."""

    def is_elsewhere(self, value: Any, request: Request) -> bool:
        """Return whether it lies elsewhere."""
        device = getattr(value, "device", "")
        return bool(device) and device.rpartition("/device:")[2] != self._word(request.target)

    def move_one(self, value: Any, request: Request) -> Any:
        """Return a copy there."""
        tensorflow = sys.modules["tensorflow"]
        word = self._word(request.target)
        # TensorFlow itself would compute on the CPU and say nothing.
        if all(
            not each.name.endswith(f"device:{word}")
            for each in tensorflow.config.list_logical_devices()
        ):
            raise absent("TensorFlow", request.target)
        with tensorflow.device(f"/device:{word}"):
            return tensorflow.identity(value)

    def _word(self, target: Target) -> str:
        kind, index = place_of(target)
        return f"{'GPU' if kind == 'cuda' else kind.upper()}:{index}"


class TensorFlow(Framework):
    """TensorFlow."""

    module: ClassVar[str] = "tensorflow"
    words: ClassVar[tuple[str, ...]] = ("tf",)
    marker: ClassVar[str] = "tensorflow.python"
    array: ClassVar[str] = "Tensor"
    uses: ClassVar[tuple[str, ...]] = (
        "Tensor",
        "device",
        "inside_function",
        "config.list_logical_devices",
    )
    leaf: ClassVar[LeafKind | None] = TensorFlowTensors()

    def adapters(self, module: ModuleType) -> Sequence[Adapter]:
        """Return what sets the device of eager operations."""
        return (TensorFlowDefault(module),)

    def name_of_device(self, device: Any, kind: str) -> str | DeviceName | None:
        """Return the name of a ``DeviceSpec``, a ``LogicalDevice`` or a ``PhysicalDevice``."""
        if kind.startswith("DeviceSpec"):
            return DeviceName.parse(device.to_string(), dialect="tf-python")
        if kind in {"LogicalDevice", "PhysicalDevice"}:
            return str(device.name).replace("/physical_device:", "/device:")
        return None

    def to_torch(self, torch: Any, array: Any) -> Any:
        """Return a copy: to TensorFlow its tensors never change."""
        if array.device.endswith("CPU:0"):
            return tensor_from_numpy(array.numpy()).clone()
        capsule = sys.modules["tensorflow"].experimental.dlpack.to_dlpack(array)
        return torch.from_dlpack(capsule).clone()


FRAMEWORK = TensorFlow()
