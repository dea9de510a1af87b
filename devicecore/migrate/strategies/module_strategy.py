"""Runs callable objects, such as transforms, on moved tensors.

Nothing runs in a scope, so that random numbers are drawn by torch's generator on the host, the same
ones as without us. What an object has of its own, as the window of a spectrogram, goes to the
device with each call, in a copy of the object: whatever the program changes in it counts.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from functools import cache
from typing import TYPE_CHECKING, Any, Final, cast, get_args

from attrs import field, frozen

from devicecore.kernels import Exactness
from devicecore.migrate.calls.arrays import is_tensor
from devicecore.migrate.calls.random_state import RandomNumbers
from devicecore.migrate.strategies.torch_strategy import Call

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from devicecore.device import Device
    from devicecore.migrate.plan.optimization_plan import Options

_LABELS: Final = (None, "torch")
_ORDER: Final = get_args(Exactness)
_HOOKS: Final = (
    "_backward_hooks", "_backward_pre_hooks", "_forward_hooks", "_forward_pre_hooks",
)  # fmt: skip


@frozen
class Classes:
    """The classes of a package whose objects can be called so, by their dotted names.

    Attributes:
        promises: What is promised of each.
        containers: Those that call others, which they have in ``transforms`` or as their modules.
        conversions: Those that make tensors on the host, of images that are none.
        refused: Attributes that stand for something that cannot be done on a device, with why.
    """

    promises: Mapping[str, Exactness]
    containers: frozenset[str] = frozenset()
    conversions: frozenset[str] = frozenset()
    refused: Mapping[str, str] = field(factory=dict)


@frozen
class ModuleStrategy:
    """Runs the method of one class's objects on tensors that were moved, and moves the result back.

    Objects of derived classes are left to themselves.

    Attributes:
        name: The dotted name of the method.
        classes: What else is known of such classes.
        is_of_heirs: Whether classes that inherit the method have this strategy, too.
        draws_numbers: Whether it may draw random numbers.
    """

    name: str
    classes: Classes
    is_of_heirs: bool = field(init=False, default=False)
    draws_numbers: bool = field(init=False, default=True)
    runs_original: bool = field(init=False, default=False)

    def compute(
        self,
        device: Device,
        options: Options,
        original: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Return what the method returns, computed on *device*.

        Raises:
            RefusedCallError: It cannot be computed there, or not as exactly as the plan asks for.
        """
        call = Call(self.name, device, options, original)
        call.need(options.kernel in _LABELS, f"there is no kernel {options.kernel!r} for it")
        place = device.torch_device or ""
        call.need(place, "torch does not know the device")
        call.need(args, "it is given no object")
        tree = _Tree(call, self.classes, place)
        inside = tree.of(args[0], self.name.rpartition(".")[0])
        loosest = max(tree.promises, key=_ORDER.index, default="exact")
        call.promise(cast("Exactness", loosest))
        moved = _Arguments(call, args[1:], kwargs, place, is_converted=tree.converts)
        with ExitStack() as undo:
            undo.callback(RandomNumbers().put_back)  # the original draws the same ones
            found = moved.back(original(inside, *moved.args, **moved.kwargs))
            undo.pop_all()
        return found


class _Tree:
    """Makes a copy of an object, and of those that it calls, with its tensors on a device.

    Attributes:
        promises: What is promised of what was copied.
        converts: Whether there is something that makes tensors of images.
    """

    def __init__(self, call: Call, classes: Classes, place: str) -> None:
        self._call = call
        self._classes = classes
        self._place = place
        self._made: dict[int, Any] = {}
        self.promises: set[Exactness] = set()
        self.converts = False

    def of(self, value: Any, name: str) -> Any:
        """Return the copy of the object that is called.

        Raises:
            RefusedCallError: It is of another class than that of this name, or has something that
                cannot be computed on a device.
        """
        own = _class_of(value)
        self._call.need(own == name, f"it is of the class {own}, and what that does is not known")
        return self._copy(value)

    def _member(self, value: Any) -> Any:
        """Return what takes the place of something that is called by what is copied."""
        if id(value) not in self._made:
            self._call.need(not _is_watched(value), "a part of it is compiled or has hooks")
            self._made[id(value)] = self._copy(value)
        return self._made[id(value)]

    def _copy(self, value: Any) -> Any:
        name = _class_of(value)
        known = self._classes
        if name in known.conversions:
            self.converts = True
            return _Converted(value, self._place)
        is_list = name in _LISTS
        is_known = name in known.promises or name in known.containers or is_list
        self._call.need(is_known, f"it has a {name}, and what that does is not known")
        if name in known.promises:
            self.promises.add(known.promises[name])
        held = vars(value)
        own = {key: each for key, each in held.items() if key not in _usual()}
        self._check(value, held, own)
        made = object.__new__(type(value))
        made.__dict__.update(held)
        made.__dict__.update(self._inside(own))
        if "_modules" in held:
            made.__dict__["_modules"] = {
                key: each if each is None else self._member(each)
                for key, each in held["_modules"].items()
            }
            made.__dict__["_buffers"] = {**held["_buffers"], **self._inside(held["_buffers"])}
        members = own.get("transforms")
        if name in known.containers and members is not None:
            made.__dict__["transforms"] = [self._member(each) for each in members]
        return made

    def _inside(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the tensors among values, on the device."""
        tensors = {key: each for key, each in values.items() if is_tensor(each)}
        for each in tensors.values():
            self._call.need(_is_on_host(each), f"a tensor of it is on {each.device}")
        return {key: _to(each, self._place) for key, each in tensors.items()}

    def _check(self, value: Any, held: dict[str, Any], own: dict[str, Any]) -> None:
        need = self._call.need
        need(not held.get("_parameters"), "it has parameters")
        need(not own.get("inplace"), "it writes into its argument")
        for name, reason in self._classes.refused.items():
            need(not own.get(name), reason)
        for name in own:
            is_method = callable(getattr(type(value), name, None))
            need(not is_method, f"its {name} is the program's own")


@cache
def _usual() -> frozenset[str]:
    """Return the attributes that every module has."""
    import torch

    return frozenset(vars(torch.nn.Module()))


_LISTS: Final = frozenset(
    f"torch.nn.modules.container.{name}" for name in ("ModuleList", "Sequential")
)


@frozen
class _Converted:
    """Makes a tensor of an image on the host, as the program would, and moves it."""

    conversion: Any
    place: str

    def __call__(self, *inputs: Any) -> Any:
        return _mapped(lambda tensor: _to(tensor, self.place), self.conversion(*inputs))


class _Arguments:
    """Arguments with their tensors on a device.

    Attributes:
        args: They themselves.
        kwargs: More of them.
    """

    def __init__(
        self,
        call: Call,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        place: str,
        *,
        is_converted: bool,
    ) -> None:
        leaves = _leaves(args, kwargs)
        has_images = any(map(_is_image, leaves))
        call.need(is_converted or not has_images, "an image of Pillow is no tensor")
        tensors = {id(each): each for each in leaves if is_tensor(each)}
        call.need(is_converted or tensors, "no tensor is among its arguments")
        others = {str(each.device) for each in tensors.values() if not _is_on_host(each)}
        call.need(not others, f"it is given tensors on {', '.join(others)}")
        moved = {key: _to(each, place) for key, each in tensors.items()}
        self._outside = args
        self._given = {id(moved[key]): each for key, each in tensors.items()}
        self.args: tuple[Any, ...] = _mapped(lambda tensor: moved[id(tensor)], args)
        self.kwargs: dict[str, Any] = (
            _mapped(lambda tensor: moved[id(tensor)], kwargs) if kwargs else kwargs
        )

    def back(self, result: Any) -> Any:
        """Return a result with its tensors on the host; what was given is given back itself."""
        for inside, outside in zip(self.args, self._outside, strict=True):
            if result is inside:
                return outside
        return _mapped(self._back, result)

    def _back(self, tensor: Any) -> Any:
        if id(tensor) not in self._given:
            self._given[id(tensor)] = _to(tensor, "cpu")
        return self._given[id(tensor)]


def _to(tensor: Any, place: str) -> Any:
    return tensor.to(place)


def _is_on_host(tensor: Any) -> bool:
    return bool(tensor.device.type == "cpu")


def _is_watched(module: Any) -> bool:
    """Return whether something else runs, or is told, when a module is called."""
    known: Any = sys.modules["torch.nn.modules.module"]
    is_all = any(getattr(known, f"_global{name}", None) for name in _HOOKS)
    return is_all or any(getattr(module, name, None) for name in (*_HOOKS, "_compiled_call_impl"))


# As torchvision's own transforms look into what they are given.
def _leaves(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    from torch.utils._pytree import tree_leaves

    if not kwargs and all(map(is_tensor, args)):
        return args
    return tuple(tree_leaves((args, kwargs)))


def _mapped(change: Callable[[Any], Any], value: Any) -> Any:
    from torch.utils._pytree import tree_map

    if is_tensor(value):
        return change(value)
    if type(value) is tuple and all(map(is_tensor, value)):
        return tuple(map(change, value))
    return tree_map(lambda each: change(each) if is_tensor(each) else each, value)


def _is_image(value: Any) -> bool:
    return any(
        base.__module__ == "PIL.Image" and base.__name__ == "Image" for base in type(value).__mro__
    )


def _class_of(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"
