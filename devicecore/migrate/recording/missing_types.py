"""Finds the dtype that a device lacks for recorded values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from devicecore.cv.device_types import lacks, missing_types
from devicecore.migrate.recording.nodes import topological_order

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from devicecore.device import Device
    from devicecore.migrate.recording.nodes import Expr, Node


def find_missing_type(device: Device, roots: Sequence[Node]) -> str:
    """Return which type the values need that a device has not; nothing if it has all.

    Args:
        device: Where they would be computed.
        roots: The values.

    Raises:
        DeviceError: The device failed when its types were tried.
    """
    missing = missing_types(device)
    if not missing:
        return ""
    exprs: list[Expr] = list(dict.fromkeys(root.expr for root in roots))
    for expr in topological_order(exprs):
        for name in _types(expr):
            if lacks(missing, name):
                what = "the program's array" if expr.primitive is None else expr.primitive.name
                return f"{what} is in {name}, and {device.name} has no {name}"
    return ""


def _types(expr: Expr) -> Iterator[str]:
    yield from (dtype.name for _, dtype in expr.results)
    own = getattr(expr.primitive, "computed_type", None)
    if own is not None:
        yield own(expr.filled(expr.inputs)[0]).name
