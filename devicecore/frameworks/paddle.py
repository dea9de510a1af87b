"""Paddle: its tensors, its places, and the device of the whole process, since it has no other."""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from threading import get_ident
from typing import TYPE_CHECKING, Any, ClassVar

from devicecore.errors import InvalidDeviceNameError, ScopeError
from devicecore.fork import rearm_after_fork
from devicecore.frameworks.base.adapter import Adapter
from devicecore.frameworks.base.dlpack import extended_dtype
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

_TYPES = {"CUDA": "gpu", "ROCM": "gpu"}


class _Entry:
    """An open scope: who entered it, for which place, and the place before."""

    __slots__ = ("before", "place", "thread")

    def __init__(self, place: str, before: str) -> None:
        self.place: str = place
        self.before: str = before
        self.thread: int = get_ident()


class PaddleDefault(Adapter):
    """Sets Paddle's device, and refuses a second thread that wants another one.

    Today's Paddle keeps one device for the process; a later one may keep one for each thread. Which
    of them this is is found out at the first change, by letting another thread make it.
    """

    title: ClassVar[str] = "Paddle"
    frameworks: ClassVar[frozenset[str]] = frozenset({"paddle"})

    def __init__(self, paddle: ModuleType) -> None:
        self._paddle: Any = paddle
        self._lock = threading.Lock()
        self._entries: list[_Entry] = []
        self.is_per_thread: bool | None = None
        rearm_after_fork(self)

    def place_of(self, device: Device) -> Any:
        """Return Paddle's name of *device*, such as ``"gpu:1"``."""
        if not device.is_local:
            raise self.refusal(device, "it is not in this process")
        name = device.memory_device.parsed_name
        if name.device_type == "CPU":
            return "cpu"
        kind = self._kind(name)
        if kind is None:
            raise self.refusal(device, f"this Paddle, {self._paddle.__version__}, has none")
        if (name.index or 0) >= (count := self._count(kind)):
            raise self.refusal(device, f"Paddle has {count} of them")
        return f"{kind}:{name.index or 0}"

    def _kind(self, name: DeviceName) -> str | None:
        """Return what Paddle calls the type, which counts case; None if it has no such type."""
        device_type, device = name.device_type or "", self._paddle.device
        if device_type in _TYPES:
            return "gpu" if self._paddle.device.is_compiled_with_cuda() else None
        if device_type == "XPU" and getattr(device, "is_compiled_with_xpu", bool)():
            return "xpu"  # of such a build these are Kunlun's, and not Intel's
        for custom in self._paddle.device.get_all_custom_device_type() or ():
            if custom.casefold() == device_type.casefold():
                return str(custom)
        return None

    def _count(self, kind: str) -> int:
        if kind == "gpu":
            return int(self._paddle.device.cuda.device_count())
        if kind == "xpu":
            return int(self._paddle.base.core.get_xpu_device_count())
        return int(self._paddle.base.core.get_custom_device_count(kind))

    def knows(self, name: DeviceName) -> bool:
        """Return whether Paddle has a custom device of that name, or one of Kunlun."""
        kind = self._kind(name)
        return kind not in {None, "gpu"} and (name.index or 0) < self._count(str(kind))

    def save(self, place: str) -> Any:
        """Return who needs *place* now, and the place before.

        Raises:
            ScopeError: Somebody needs another one.
        """
        with self._lock:
            mine = get_ident()
            for entry in self._entries:
                if entry.thread != mine and entry.place != place and not self.is_per_thread:
                    msg = f"another thread's scope has Paddle on {entry.place}, not on {place}"
                    raise ScopeError(
                        msg,
                        "this Paddle has one device for all threads of the process",
                        "use one device at a time, or pass a place to each call of Paddle",
                    )
            entry = _Entry(place, self._paddle.device.get_device())
            self._entries.append(entry)
            return entry

    def set(self, place: str, saved: _Entry) -> None:
        """Make *place* the device of the process, for as long as nobody needs another one."""
        if saved.before != place:
            with self._lock:
                self._set(place)

    def _set(self, place: str) -> None:
        if self.is_per_thread is None and self._set_elsewhere(place):
            self.is_per_thread = self._paddle.device.get_device() != place
        if self._paddle.device.get_device() != place:
            self._paddle.device.set_device(place)

    def _set_elsewhere(self, place: str) -> bool:
        """Set *place* in a thread of its own; return whether Paddle took it."""
        taken = []

        def set_device() -> None:
            with suppress(Exception):  # it is raised where this thread sets it
                self._paddle.device.set_device(place)
                taken.append(place)

        setter = threading.Thread(target=set_device)
        setter.start()
        setter.join()
        return bool(taken)

    def leave(self, saved: _Entry) -> None:
        """Put the place back that was there before, once nobody else is inside."""
        with self._lock:
            if saved not in self._entries:  # it was left before
                return
            above = [each for each in self._entries if self._shares(each, saved)]
            above = above[above.index(saved) + 1 :]
            self._entries.remove(saved)
            if above:
                above[0].before = saved.before
            elif self._paddle.device.get_device() != saved.before:
                self._paddle.device.set_device(saved.before)

    def _shares(self, one: _Entry, other: _Entry) -> bool:
        return one.thread == other.thread or not self.is_per_thread

    def join(self, upper: Any, lower: Any) -> Any:
        """Take *lower* out; the process's own order of entries is what counts."""
        self.leave(lower)
        return upper

    def leave_in_child(self, saved: Any) -> None:
        """Put back, with a lock that no thread of the parent holds."""
        self._lock = threading.Lock()
        super().leave_in_child(saved)

    def after_fork(self) -> None:
        """Take a lock of its own in a forked child, and forget the parent's other threads."""
        self._lock = threading.Lock()
        mine = get_ident()
        for entry in [each for each in self._entries if each.thread != mine]:
            self.leave(entry)


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
        raise absent("Paddle", target)

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


class Paddle(Framework):
    """PaddlePaddle."""

    module: ClassVar[str] = "paddle"
    words: ClassVar[tuple[str, ...]] = ("paddlepaddle",)
    marker: ClassVar[str] = "paddle.framework"
    array: ClassVar[str] = "Tensor"
    uses: ClassVar[tuple[str, ...]] = ("Tensor", "device.get_device", "device.set_device")
    leaf: ClassVar[LeafKind | None] = PaddleTensors()

    def adapters(self, module: ModuleType) -> Sequence[Adapter]:
        """Return what sets the device of the process."""
        return (PaddleDefault(module),)

    def name_of_device(self, device: Any, kind: str) -> str | DeviceName | None:
        """Return the name of a place, which prints as ``Place(gpu:0)``."""
        if not kind.endswith("Place"):
            return None
        text = str(device)
        word, _, index = text.removeprefix("Place(").removesuffix(")").partition(":")
        if word in {"gpu_pinned", "cpu"}:
            return DeviceName(device_type="CPU")
        if not index.isdecimal():
            raise InvalidDeviceNameError(text, 0, "it is the place of no device")
        return f"{'CUDA' if word == 'gpu' else word}:{index}"

    def to_torch(self, torch: Any, array: Any) -> Any:
        """Return a tensor that shares the memory."""
        return super().to_torch(torch, array.detach())

    def to_numpy(self, numpy: Any, array: Any) -> Any:
        """Return the array; of what numpy lacks Paddle gives the bits, as whole numbers."""
        converted = numpy.asarray(array.numpy())
        name = str(array.dtype).rpartition(".")[2]
        if name == "bfloat16" or name.startswith("float8"):
            converted = converted.view(extended_dtype(name))
        return converted


FRAMEWORK = Paddle()
