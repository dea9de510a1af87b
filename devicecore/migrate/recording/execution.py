"""Computes recorded values on a device: of one frame, or of many equal frames at once."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from devicecore.errors import RefusedCallError
from devicecore.ledger import default_ledger
from devicecore.migrate.recording.fusion import fuse
from devicecore.migrate.recording.nodes import topological_order
from devicecore.runtime import host_cpu
from devicecore.transfer import as_tensor
from devicecore.transfer.torch_leaves import without_modes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from devicecore.device import Device
    from devicecore.migrate.recording.nodes import Expr, Node

    Tensor = torch.Tensor


def regroup_rows(
    count: int, groups: Sequence[tuple[Sequence[int], Sequence[Tensor]]]
) -> list[list[Tensor]]:
    """Return the values of each frame from those of groups of frames.

    Args:
        count: How many frames there are.
        groups: What `compute_frames` returned.
    """
    rows: list[list[Tensor]] = [[] for _ in range(count)]
    for members, columns in groups:
        for place, index in enumerate(members):
            rows[index] = [column[place] for column in columns]
    return rows


def compute_frames(
    device: Device, frames: Sequence[Sequence[Node]], *, is_strict: bool = False
) -> list[tuple[list[int], list[Tensor]]]:
    """Return values as tensors on a device, of all frames that did the same in one for each value.

    Args:
        device: Where.
        frames: The values that are wanted of each frame.
        is_strict: Whether an error takes the place of an original's answer.

    Returns:
        The indices of the frames of each group, and a tensor for each of their values, with an axis
        for the frames.

    Raises:
        DeviceError: The device cannot.
    """
    alike: defaultdict[Any, list[int]] = defaultdict(list)
    for index, roots in enumerate(frames):
        alike[tuple([root.expr for root in roots])].append(index)
    found = []
    with without_modes(), torch.no_grad():
        for exprs, members in alike.items():
            whole = None
            if len(exprs) == 1:
                whole = fuse(device, [frames[index][0] for index in members])
            if whole is None:
                found += _groups(device, frames, members, is_strict=is_strict)
            else:
                found.append((members, [whole]))
    return found


def _groups(
    device: Device, frames: Sequence[Sequence[Node]], members: Sequence[int], *, is_strict: bool
) -> list[tuple[list[int], list[Tensor]]]:
    """Return the values of frames that may differ in which of their inputs are the same one."""
    groups: defaultdict[Any, list[int]] = defaultdict(list)
    programs = {index: list(topological_order(frames[index])) for index in members}
    for index, nodes in programs.items():
        groups[_program(nodes, frames[index])].append(index)
    found = []
    for same in groups.values():
        columns = list(zip(*(programs[index] for index in same), strict=True))
        wanted = [programs[same[0]].index(root) for root in frames[same[0]]]
        found.append((same, _run(device, columns, wanted, is_strict=is_strict)))
    return found


def compute_node(device: Device, root: Node, *, is_strict: bool = False) -> Tensor:
    """Return one value as a tensor on a device, and keep there what it was computed from.

    Args:
        device: Where.
        root: The value.
        is_strict: Whether an error takes the place of an original's answer.

    Raises:
        DeviceError: The device cannot.
    """
    with without_modes(), torch.no_grad():
        if root.there is None:
            whole = fuse(device, [root])
            if whole is not None:
                root.there = whole
        waiting = [root]
        while waiting:
            node = waiting[-1]
            missing = [each for each in node.inputs if each.there is None]
            if node.there is None and missing:
                waiting += missing
                continue
            if node.there is None:
                node.there = _step(
                    device, [node], [each.there for each in node.inputs], is_strict=is_strict
                )
            waiting.pop()
    there: Any = root.there
    found: Tensor = there[0]
    return found


def _program(nodes: Sequence[Node], roots: Sequence[Node]) -> Any:
    """Return what a frame did, the same for all that did the same."""
    places = {id(node): place for place, node in enumerate(nodes)}
    steps = tuple((node.expr, tuple(places[id(each)] for each in node.inputs)) for node in nodes)
    return steps, tuple(places[id(root)] for root in roots)


def _run(
    device: Device, columns: Sequence[Sequence[Node]], wanted: Sequence[int], *, is_strict: bool
) -> list[Tensor]:
    """Return the wanted values, of all frames at once.

    Args:
        device: Where.
        columns: The same value of all frames, for each value.
        wanted: Which of these.
        is_strict: Whether an error takes the place of the original's answer.
    """
    places = {id(column[0]): place for place, column in enumerate(columns)}
    values: list[Any] = []
    for column in columns:
        inputs = [values[places[id(each)]] for each in column[0].inputs]
        values.append(_step(device, column, inputs, is_strict=is_strict))
    return [values[place] for place in wanted]


def _step(device: Device, column: Sequence[Node], inputs: Sequence[Any], *, is_strict: bool) -> Any:
    """Return the same value of all frames."""
    expr = column[0].expr
    if expr.primitive is None:
        # A copy in any case: whoever gave the arrays may use their memory for others soon.
        return torch.stack([as_tensor(node.host, device) for node in column])
    args, kwargs = expr.filled(inputs)
    try:
        found = expr.primitive.lower(device, expr.options, args, kwargs)
    except RefusedCallError as error:
        if is_strict:
            raise
        found = _by_the_original(device, error, expr, inputs, len(column))
    return _shaped(found, expr, len(column))


def _shaped(found: Any, expr: Expr, count: int) -> Any:
    """Return results in the shapes that were foretold.

    Raises:
        RefusedCallError: They are others, so that what followed may be wrong.
    """
    if isinstance(found, (tuple, list)):
        return [
            _tensor(each, (count, *shape), dtype, expr)
            for each, (shape, dtype) in zip(found, expr.results, strict=True)
        ]
    return _tensor(found, (count, *expr.shape), expr.dtype, expr)


def _tensor(found: Tensor, shape: tuple[int, ...], dtype: np.dtype[Any], expr: Expr) -> Tensor:
    is_plane = tuple(found.shape) == (*shape, 1)
    shaped = found.squeeze(-1) if is_plane else found
    if tuple(shaped.shape) != shape or str(shaped.dtype) != f"torch.{dtype.name}":
        reason = f"its result is {tuple(found.shape)} of {found.dtype}, not {shape} of {dtype}"
        raise RefusedCallError(str(expr), str(found.device), {"the migrator": reason})
    return shaped


def _by_the_original(
    device: Device, error: RefusedCallError, expr: Expr, inputs: Sequence[Any], count: int
) -> Any:
    """Let the original function compute a value that no kernel does."""
    assert expr.primitive is not None
    reasons = "; ".join(f"{label}: {why}" for label, why in error.refused.items())
    default_ledger().record(expr.primitive.name, device.name, host_cpu().name, reasons)
    arrays = [each.cpu().numpy() for each in inputs]
    results = []
    for index in range(count):
        args, kwargs = expr.filled([each[index] for each in arrays])
        results.append(expr.primitive.impl(args, kwargs))
    if isinstance(results[0], (tuple, list)):
        columns = zip(*results, strict=True)
        return [as_tensor(np.stack(each), device) for each in columns]
    return as_tensor(np.stack(results), device)


def download(tensor: Tensor) -> np.ndarray[Any, Any]:
    """Return a tensor's values in an array with memory of its own."""
    found = np.empty(tensor.shape, str(tensor.dtype).removeprefix("torch."))
    torch.from_numpy(found).copy_(tensor)
    return found
