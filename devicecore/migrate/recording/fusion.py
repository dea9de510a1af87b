"""Fuses the steps of an input pipeline into one kernel of `devicecore.cv.preprocess`."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

from devicecore.cv import catalog
from devicecore.cv.preprocessing import fused_input
from devicecore.cv.recipe import PreprocessRecipe
from devicecore.cv.table import Table
from devicecore.migrate.recording.array_primitives import COPY, POINTWISE, TRANSPOSE
from devicecore.migrate.recording.lookup_tables import make_table
from devicecore.migrate.recording.opencv_primitives import OpenCVPrimitive

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch

    from devicecore.cv.recipe import Layout
    from devicecore.device import Device
    from devicecore.migrate.recording.nodes import Expr, Node

# Of expressions that were asked about; with more than these all are asked about anew.
_MOST = 256
_PLANES_FIRST = (2, 0, 1)
_COLOURS = (3,)

_known: dict[Expr, PreprocessRecipe | None] = {}


def fuse(device: Device, roots: Sequence[Node]) -> torch.Tensor | None:
    """Return a value of each of several frames in one tensor, if there are kernels for all of it.

    Args:
        device: Where.
        roots: The values; all of one expression.
    """
    expr = roots[0].expr
    if expr not in _known:
        if len(_known) >= _MOST:
            _known.clear()
        _known[expr] = _recipe(expr)
    recipe = _known[expr]
    return None if recipe is None else fused_input(device, list(map(_image, roots)), recipe)


def _image(root: Node) -> Any:
    node = root
    while node.inputs:
        (node,) = node.inputs
    return node.host


def _recipe(expr: Expr) -> PreprocessRecipe | None:
    """Return the recipe of an expression: resize, blur, turn the channels, look up.

    Primitives are compared by value: those of an expression may have come from another process.
    """
    layout, expr = _laid_out(expr)
    if expr.primitive != POINTWISE or expr.dtype != np.float32:
        return None
    values = make_table(expr.args[1])
    (expr,) = expr.inputs
    if values is None or values.axis not in {None, 2} or expr.shape[2:] != _COLOURS:
        return None
    found = _picture(expr)
    if found is None:
        return None
    height, width = expr.shape[:2]
    columns = np.broadcast_to(values.host.reshape(256, -1), (256, *_COLOURS))
    table = Table(np.ascontiguousarray(columns.T))
    is_swapped, blur = found
    return PreprocessRecipe((width, height), "stretch", 0, is_swapped, blur, table, layout)


def _laid_out(expr: Expr) -> tuple[Layout, Expr]:
    """Return the order of the axes, and what is put into that order."""
    layout: Layout = "NHWC"
    while expr.primitive == COPY or (expr.primitive == TRANSPOSE and layout == "NHWC"):
        if expr.primitive == TRANSPOSE:
            if expr.args[1] != _PLANES_FIRST:
                break
            layout = "NCHW"
        (expr,) = expr.inputs
    return layout, expr


def _picture(expr: Expr) -> tuple[bool, tuple[int, int] | None] | None:
    """Return whether channels are turned, and the blur, after a resize of a program's image."""
    is_swapped, blur = False, None
    while (step := _step(expr)) is not None:
        (before,) = expr.inputs
        match step:
            # The channels can be turned at any time: all else is done with each by itself.
            case "cvtColor", {"code": cv2.COLOR_BGR2RGB, "dstCn": 0}:
                is_swapped = not is_swapped
            case "GaussianBlur", given if blur is None and _is_plain(given):
                blur = tuple(given["ksize"])
            case "resize", {"interpolation": cv2.INTER_LINEAR} if _is_given(before):
                return is_swapped, blur
            case _:
                return None
        expr = before
    return None


def _is_given(expr: Expr) -> bool:
    """Return whether a value is an image of bytes that the program had."""
    return expr.primitive is None and expr.dtype == np.uint8 and expr.shape[2:] == _COLOURS


def _step(expr: Expr) -> tuple[str, dict[str, Any]] | None:
    """Return the function of OpenCV, and its arguments by names."""
    primitive = expr.primitive
    if not isinstance(primitive, OpenCVPrimitive) or len(expr.inputs) != 1:
        return None
    if expr.options is None or expr.options.kernel not in {None, "triton"}:
        return None
    known = catalog.find(primitive.function, "torch")
    if known is None:
        return None
    bound = signature(known.planner).bind(*expr.args, **expr.kwargs)
    bound.apply_defaults()
    return primitive.function, bound.arguments


def _is_plain(given: dict[str, Any]) -> bool:
    return (
        given["sigmaX"] == given["sigmaY"] == given["hint"] == 0
        and given["borderType"] == cv2.BORDER_DEFAULT
        and all(isinstance(each, int) for each in given["ksize"])
    )
