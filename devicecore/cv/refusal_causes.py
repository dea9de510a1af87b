"""`find_causes`: finds the arguments for which a planner refuses a call, by trying others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import evolve

from devicecore.cv.image import Image
from devicecore.cv.sequences import rebuild_sequence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    Arguments = Mapping[str, Any]

# Values of examples that are tried in the place of one that is refused.
_MOST_TRIED = 24
# Examples that a call is changed into where one other value is not enough.
_MOST_WHOLE = 40
_TYPES = ("uint8", "float32", "uint16", "int16", "float64")
_CHANNELS = (3, 1, 2, 4)
_ABSENT = object()


def find_causes(
    arguments: Arguments,
    is_refused: Callable[[Arguments], bool],
    examples: Iterable[Arguments],
) -> tuple[str, ...]:
    """Return the arguments with which a call would not be refused if one of them were another.

    Where several have to be others at once, those; the names of such that are not given, too.
    Nothing where no example is taken either.

    Args:
        arguments: The call's, by their names.
        is_refused: Says whether a call with others would be.
        examples: Arguments of calls that there are kernels for.
    """
    known = list(examples)
    names = tuple(
        name
        for name in arguments
        if any(not is_refused(each) for each in _changed(arguments, name, known))
    )
    return names or _together(arguments, is_refused, known)


def _changed(
    arguments: Arguments, name: str, examples: list[Arguments]
) -> Iterator[dict[str, Any]]:
    """Yield the arguments without one of them, and with other values of it."""
    if arguments[name] is not None:  # that is as good as none
        yield {key: value for key, value in arguments.items() if key != name}
    for value in _others(arguments, name, examples):
        yield {**arguments, name: value}


def _others(arguments: Arguments, name: str, examples: list[Arguments]) -> Iterator[Any]:
    """Yield other values of an argument, the nearest ones first."""
    value = arguments[name]
    if isinstance(value, Image):
        yield from _other_images(value)
        first = next(each for each in arguments.values() if isinstance(each, Image))
        if first is not value:  # the others have to fit the first one
            yield first
            yield from _other_images(evolve(value, height=first.height, width=first.width))
    seen: list[Any] = []
    for example in examples:
        other = example.get(name)
        if name in example and not any(other is each for each in seen):
            seen.append(other)
            yield other
        if len(seen) == _MOST_TRIED:
            return


def _other_images(image: Image) -> Iterator[Image]:
    for dtype in (image.dtype, *_TYPES):
        for channels in (image.channels, *_CHANNELS):
            yield evolve(image, channels=channels, dtype=dtype, has_channels=channels > 1)


def _together(
    arguments: Arguments, is_refused: Callable[[Arguments], bool], examples: list[Arguments]
) -> tuple[str, ...]:
    """Return the fewest arguments that have to be others at once, as far as that is found."""
    fewest: tuple[str, ...] = ()
    for other in _whole_calls(arguments, examples):
        if is_refused(other):
            continue
        needed = _needed(arguments, other, is_refused)
        if not fewest or len(needed) < len(fewest):
            fewest = needed
        if len(fewest) <= 2:
            break
    return fewest


def _whole_calls(arguments: Arguments, examples: list[Arguments]) -> Iterator[Arguments]:
    """Yield calls with images of other types, then others altogether."""
    first = next((each for each in arguments.values() if isinstance(each, Image)), None)
    if first is not None:
        for other in _other_images(first):
            yield {name: _like(value, other) for name, value in arguments.items()}
    yield from examples[:_MOST_WHOLE]


def _like(value: Any, other: Image) -> Any:
    if isinstance(value, (list, tuple)) and any(isinstance(each, Image) for each in value):
        return rebuild_sequence(value, (_like(each, other) for each in value))
    if not isinstance(value, Image):
        return value
    return evolve(
        value, channels=other.channels, dtype=other.dtype, has_channels=other.has_channels
    )


def _needed(
    arguments: Arguments, other: Arguments, is_refused: Callable[[Arguments], bool]
) -> tuple[str, ...]:
    """Return in what a refused call has to differ from its own arguments to be *other*."""
    names = {**arguments, **other}
    needed = [
        name for name in names if arguments.get(name, _ABSENT) is not other.get(name, _ABSENT)
    ]
    current = dict(other)
    for name in list(needed):
        tried = {key: value for key, value in current.items() if key != name}
        if name in arguments:
            tried[name] = arguments[name]
        if not is_refused(tried):
            current = tried
            needed.remove(name)
    return tuple(needed)
