"""Tensors of JAX, TensorFlow, Paddle, CuPy and ONNX Runtime, moved by their own framework."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from devicecore.errors import NotLiveError, TransferError
from devicecore.optional import class_in
from devicecore.transfer.request import LeafKind, MoveFailedError, OneByOne

if TYPE_CHECKING:
    from collections.abc import Sequence

    from devicecore.transfer.request import Request
    from devicecore.transfer.target import Target


def place_of(target: Target) -> tuple[str, int]:
    """Return the kind of memory, ``"cpu"``, ``"cuda"`` or another, and its index."""
    device = target.device
    if device is None:
        return "nowhere", 0
    kind = "cpu" if target.is_host else device.device_type.lower()
    index = device.parsed_name.index or 0  # of hosts too: JAX and TensorFlow may have several
    return ("cuda" if kind == "rocm" else kind), index


def _absent(framework: str, target: Target) -> NotLiveError:
    fix = "move its tensors to a device that it has"
    return NotLiveError(f"{target.name} for {framework}", "absent", "it has no such device", fix)


class JaxArrays(LeafKind):
    """Arrays of JAX; all of them go in one call."""

    def is_elsewhere(self, value: Any, request: Request) -> bool:
        """Return whether it lies elsewhere; what is being traced lies nowhere."""
        if isinstance(value, sys.modules["jax"].core.Tracer):
            return False
        device = self._device(request.target)
        return device is None or value.devices() != {device}

    def move(self, values: Sequence[Any], request: Request) -> list[Any]:
        """Return the arrays on the target."""
        device = self._device(request.target)
        if device is None:
            raise MoveFailedError(0, _absent("JAX", request.target))
        try:
            moved: list[Any] = sys.modules["jax"].device_put(list(values), device)
            if not request.non_blocking or (request.target.is_host and request.wait):
                sys.modules["jax"].block_until_ready(moved)
        except Exception as error:
            raise MoveFailedError(0, error) from error
        return moved

    def _device(self, target: Target) -> Any:
        kind, index = place_of(target)
        try:
            devices = sys.modules["jax"].local_devices(backend="gpu" if kind == "cuda" else kind)
        except RuntimeError:  # it knows no such backend
            return None
        return devices[index] if index < len(devices) else None


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
            raise _absent("TensorFlow", request.target)
        with tensorflow.device(f"/device:{word}"):
            return tensorflow.identity(value)

    def _word(self, target: Target) -> str:
        kind, index = place_of(target)
        return f"{'GPU' if kind == 'cuda' else kind.upper()}:{index}"


class PaddleTensors(OneByOne):
    """Tensors of Paddle."""

    def is_elsewhere(self, value: Any, request: Request) -> bool:
        """Return whether it lies elsewhere."""
        return self._word_of(value.place).casefold() != self._word(request.target)

    def move_one(self, value: Any, request: Request) -> Any:
        """Return a copy there."""
        word = self._word(request.target)
        if word != "cpu":
            kind, _, index = word.partition(":")
            word = f"{self._spelled(kind, request.target)}:{index}"
        return value.to(word, blocking=not request.non_blocking or request.target.is_host)

    def _spelled(self, kind: str, target: Target) -> str:
        """Return Paddle's name of a type, which counts case."""
        device = sys.modules["paddle"].device
        known = ["gpu"] if device.is_compiled_with_cuda() else []
        known += device.get_all_custom_device_type() or ()
        for each in known:
            if each.casefold() == kind:
                return str(each)
        raise _absent("Paddle", target)

    def _word_of(self, place: Any) -> str:
        if place.is_cpu_place():
            return "cpu"
        if place.is_gpu_place():
            return f"gpu:{place.gpu_device_id()}"
        if place.is_custom_place():
            return f"{place.custom_device_type()}:{place.custom_device_id()}"
        return str(place)

    def _word(self, target: Target) -> str:
        kind, index = place_of(target)
        if kind == "cpu":
            return "cpu"
        return f"{'gpu' if kind == 'cuda' else kind}:{index}"


class CupyArrays(OneByOne):
    """Arrays of CuPy, which are on a CUDA card always."""

    def is_elsewhere(self, value: Any, request: Request) -> bool:
        """Return whether it lies elsewhere."""
        return place_of(request.target) != ("cuda", value.device.id)

    def move_one(self, value: Any, request: Request) -> Any:
        """Return a copy on another card."""
        kind, index = place_of(request.target)
        if kind != "cuda":
            fix = "convert it with devicecore.to_numpy"
            raise TransferError("", f"CuPy has no arrays on {request.target.name}", fix)
        cupy = sys.modules["cupy"]
        with cupy.cuda.Device(index):
            return cupy.array(value)


class OrtValues(OneByOne):
    """Tensors of ONNX Runtime; sequences and maps of it stay where they are."""

    def is_elsewhere(self, value: Any, request: Request) -> bool:
        """Return whether it is a tensor that lies elsewhere."""
        if not value.is_tensor():
            return False
        kind, index = _place_of_value(value)
        if request.target.is_host:
            return kind != "cpu"  # it knows one host only
        return (kind, index) != place_of(request.target)

    def move_one(self, value: Any, request: Request) -> Any:
        """Return a copy there."""
        ort = sys.modules["onnxruntime"]
        array, (kind, index) = value.numpy(), place_of(request.target)
        if kind == "cpu":
            return ort.OrtValue.ortvalue_from_numpy(array.copy())
        return ort.OrtValue.ortvalue_from_numpy(array, kind, index)


def _place_of_value(value: Any) -> tuple[str, int]:
    kind = value.device_name().lower()
    if kind == "cpu":
        return "cpu", 0
    try:
        return kind, int(value.__dlpack_device__()[1])
    except (AttributeError, RuntimeError):  # WebGPU's buffers have no number
        return kind, 0


_KINDS: dict[tuple[str, str], LeafKind] = {
    ("jax", "Array"): JaxArrays(),
    ("tensorflow", "Tensor"): TensorFlowTensors(),
    ("paddle", "Tensor"): PaddleTensors(),
    ("cupy", "ndarray"): CupyArrays(),
    ("onnxruntime", "OrtValue"): OrtValues(),
}


def foreign_kind(kind: type) -> LeafKind | None:
    """Return the kind of tensors of another framework than torch, if *kind* is their class."""
    return next((_KINDS[each] for each in _KINDS if issubclass(kind, class_in(*each))), None)
