"""`DeviceOptions`: which devices to make, and how."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from operator import index
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from devicecore.liveness.validators import check, check_mapping, is_a
from devicecore.names import canonical_type, checked_framework, meant_by

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from attrs import Attribute

    from devicecore.liveness import PhysicalDevice


def _counts(_: object, attribute: Attribute[Any], value: Any) -> None:
    check_mapping(attribute.name, value, "{'CPU': 3}")
    for key, count in value.items():
        check(f"{attribute.name}[{key!r}]", count, int, least=0)


def _by_type(_: object, attribute: Attribute[Any], value: Any) -> None:
    check_mapping(attribute.name, value, "{'CUDA': (0, 2)}")
    for key, indices in value.items():
        if isinstance(indices, str) or not isinstance(indices, Collection):
            name = f"{attribute.name}[{key!r}]"
            msg = f"{name} is {indices!r}; it is a list of indices, such as (0, 2)"
            raise TypeError(msg)
        for each in indices:
            check(f"an index in {attribute.name}[{key!r}]", each, int, least=0)


def _texts(_: object, attribute: Attribute[Any], value: Any) -> None:
    if not isinstance(value, tuple):
        hint = f"; give a list: [{value!r}]" if isinstance(value, str) else ""
        msg = f"{attribute.name} is {value!r}; it is a list of names{hint}"
        raise TypeError(msg)
    for each in value:
        check(f"a name in {attribute.name}", each, str)


def _tuple(given: Any) -> Any:
    return tuple(given) if isinstance(given, list | set | frozenset) else given


def _number(given: Any) -> Any:
    """Return a whole number of any library as an int; the validator sees all else."""
    if isinstance(given, bool) or "bool" in str(getattr(given, "dtype", "")):
        return given
    if getattr(given, "shape", ()) != ():  # an array of one number is none
        return given
    try:
        return index(given)
    except TypeError:
        return given


def _counts_of(given: Any) -> Any:
    if not isinstance(given, Mapping):
        return given
    return {key: _number(count) for key, count in given.items()}


def _indices_of(given: Any) -> Any:
    if not isinstance(given, Mapping):
        return given
    return {key: _indices(value) for key, value in given.items()}


def _indices(value: Any) -> Any:
    if getattr(value, "ndim", 0) == 1:  # an array, which is compared number by number
        value = tuple(value)
    kind = type(value)
    return kind(map(_number, value)) if kind in (list, tuple, set, frozenset) else value


def _once(_: object, attribute: Attribute[Any], value: Mapping[str, object]) -> None:
    """Refuse a type that is named twice, in other case or by its provider."""
    named: dict[str, str] = {}
    for key in value:
        other = named.setdefault(canonical_type(key).casefold(), key)
        if other != key:
            msg = f"{attribute.name} has {other!r} and {key!r}, which mean the same; name it once"
            raise ValueError(msg)


def _names(given: Any) -> Any:
    """Write objects of frameworks and device names as texts; the validator sees all else."""
    given = _tuple(given)
    if not isinstance(given, tuple):
        return given
    return tuple(each if (text := meant_by(each)) is None else str(text) for each in given)


def _frameworks(given: Any) -> Any:
    given = (given,) if isinstance(given, str) else _tuple(given)
    if not isinstance(given, tuple) or not all(isinstance(each, str) for each in given):
        return given
    return tuple(dict.fromkeys(map(checked_framework, given)))


@frozen
class DeviceOptions:
    """Which devices to make, and how.

    Attributes:
        device_count: How many devices of a type at most, or GPUs of a class, such as
            ``{"CPU": 3, "GPU": 0}``, in any case or by the provider; a host device can be made more
            than once, a GPU cannot.
        visible: The indices that are made, for a type or a class, such as ``{"CUDA": (0, 2)}``; all
            if absent. The CPU of the host is always there.
        filters: Device names; only devices that match one of them are made, and the CPU.
        memory_limit: Memory that may be used on each device, in bytes; None for all of it.
        threads: How many asynchronous calls may run at once on a host device; None for one per
            usable CPU.
        frameworks: The frameworks that the devices are for, ``"torch"`` or ``"onnx"`` in any case,
            one alone also as a text; empty for all. A registry hands a factory those that were
            found live.
        physical: The hardware that the probe saw; a registry fills it in for the factory.

    Raises:
        TypeError: A value is of another type.
        ValueError: A number is too small, a framework is none, or a type is named twice.
    """

    device_count: Mapping[str, int] = field(
        factory=dict, converter=_counts_of, validator=[_counts, _once], hash=False
    )
    visible: Mapping[str, Sequence[int]] = field(
        factory=dict, converter=_indices_of, validator=[_by_type, _once], hash=False
    )
    filters: tuple[str, ...] = field(default=(), converter=_names, validator=_texts)
    memory_limit: int | None = field(
        default=None, converter=_number, validator=is_a(int, or_none=True, least=1)
    )
    threads: int | None = field(
        default=None, converter=_number, validator=is_a(int, or_none=True, least=1)
    )
    frameworks: tuple[str, ...] = field(default=(), converter=_frameworks, validator=_texts)
    physical: tuple[PhysicalDevice, ...] = ()

    def chosen(self, device_type: str, seen: Iterable[PhysicalDevice]) -> list[PhysicalDevice]:
        """Return those of *seen* that *visible* and *device_count* let through."""
        visible = self.visible.get(device_type)
        kept = [device for device in seen if visible is None or device.index in visible]
        return kept[: self.device_count.get(device_type)]
