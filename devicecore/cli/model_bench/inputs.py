"""Inputs for a model: random ones of the types and shapes that it declares, or those of a file."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np  # noqa: TID253 - only the children that measure import this module

from devicecore.cli.model_bench.values import Given
from devicecore.cli.usage import UsageError
from devicecore.errors import ModelError
from devicecore.onnx.arrays import ELEMENT_TYPES
from devicecore.onnx.ports import dimensions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    Feeds = dict[str, Any]

_SEED = 0
_BATCH, _CHANNELS, _SIDE, _DEPTH, _LENGTH = 1, 3, 224, 16, 128
_IMAGE_RANK = 4  # and above
_CHANNEL_COUNTS = (1, 3, 4)
_TEXTS = "tensor(string)"


def generated(
    arguments: Sequence[Any], shapes: Mapping[str, tuple[int, ...]], model: str
) -> tuple[Feeds, tuple[Given, ...]]:
    """Return random arrays for the inputs of a model, the same ones each time.

    Fractions are from 0 up to 1, bytes any, other whole numbers 0 or 1, as these are indices of
    every table; texts are one word.

    Args:
        arguments: The inputs as ONNX Runtime's session declares them.
        shapes: The shapes that were asked for.
        model: The model, for messages.

    Raises:
        UsageError: A shape is asked for that an input cannot have.
        ModelError: An input is of a kind that cannot be generated.
    """
    _refuse_unknown(shapes, arguments)
    random = np.random.default_rng(_SEED)
    feeds: Feeds = {}
    given = []
    for argument in arguments:
        shape, chosen = _shape(argument, shapes.get(argument.name))
        array = _random(argument, shape, random, model)
        feeds[argument.name] = array
        given.append(Given(argument.name, _dtype(array), shape, chosen))
    return feeds, tuple(given)


def loaded(file: Path) -> tuple[Feeds, tuple[Given, ...]]:
    """Return the arrays of *file*, which ``numpy.savez`` wrote by the names of the inputs.

    Raises:
        UsageError: It cannot be read as such.
    """
    try:
        archive = np.load(file, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise _no_archive(file, "it holds one array without a name")
        with archive:
            feeds = {name: _from_file(archive[name]) for name in archive.files}
    except OSError as error:
        raise _no_archive(file, error.strerror or str(error)) from error
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise _no_archive(file, "it is no such file, or holds objects") from error
    given = [Given(name, _dtype(array), array.shape) for name, array in feeds.items()]
    return feeds, tuple(given)


def _from_file(array: Any) -> Any:
    return array.astype(object) if array.dtype.kind == "U" else array  # as ONNX Runtime takes texts


def _no_archive(file: Path, why: str) -> UsageError:
    return UsageError(f"--inputs {file} cannot be read: {why}", "numpy.savez writes such a file")


def _refuse_unknown(shapes: Iterable[str], arguments: Sequence[Any]) -> None:
    names = [argument.name for argument in arguments]
    if unknown := [name for name in shapes if name not in names]:
        msg = f"the model has no input {unknown[0]!r} for --shape"
        raise UsageError(msg, f"it has {', '.join(map(repr, names)) or 'none'}")


def _shape(
    argument: Any, wanted: tuple[int, ...] | None
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shape that an input gets, and which of its sizes are our own choice."""
    declared = argument.shape
    if wanted is None:
        chosen = tuple(axis for axis, size in enumerate(declared) if not isinstance(size, int))
        return tuple(_size(declared, axis) for axis in range(len(declared))), chosen
    # ONNX Runtime says nothing of the shape for a single number, and for any rank.
    fits = not declared or (
        len(wanted) == len(declared)
        and all(
            size == fixed
            for size, fixed in zip(wanted, declared, strict=True)
            if isinstance(fixed, int)
        )
    )
    if not fits:
        asked = ",".join(map(str, wanted))
        msg = f"--shape {argument.name}={asked} does not fit the model"
        raise UsageError(msg, f"it takes {argument.name!r} as {dimensions(declared)}")
    return wanted, ()


def _size(declared: Sequence[object], axis: int) -> int:
    size, rank = declared[axis], len(declared)
    if isinstance(size, int):
        return size
    name = str(size or "").lower()
    if axis == 0 or "batch" in name or name in ("n", "b"):
        return _BATCH
    if rank < _IMAGE_RANK:
        return _LENGTH
    sides = (rank - 2, rank - 1)
    if declared[-1] in _CHANNEL_COUNTS:  # channels last
        sides = (rank - 3, rank - 2)
    if axis in sides:
        return _SIDE
    return _CHANNELS if axis in (1, rank - 1) else _DEPTH


def _random(argument: Any, shape: tuple[int, ...], random: np.random.Generator, model: str) -> Any:
    if argument.type == _TEXTS:
        return np.full(shape, "text", object)
    element = ELEMENT_TYPES.get(argument.type)
    if element is None or not element.in_numpy:
        reason = f"its input {argument.name!r} is a {argument.type}, which cannot be generated"
        raise ModelError(model, reason, "measure it in a program of your own")
    dtype = np.dtype(element.name)
    if dtype.kind == "f":
        return random.random(shape).astype(dtype)
    highest = 256 if dtype == np.uint8 else 2
    return random.integers(highest, size=shape).astype(dtype)


def _dtype(array: Any) -> str:
    return "text" if array.dtype.kind == "O" else str(array.dtype)
