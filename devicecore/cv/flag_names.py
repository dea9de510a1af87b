"""`flag_name`: OpenCV's name of a flag's number."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

import cv2

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

# What OpenCV's names of a parameter's values begin with, and those that may be added to one.
_WARPS = ("WARP_FILL_OUTLIERS", "WARP_INVERSE_MAP", "WARP_RELATIVE_MAP")
_POLAR = ("WARP_FILL_OUTLIERS", "WARP_INVERSE_MAP", "WARP_POLAR_LOG")
_THRESHOLDS = ("THRESH_OTSU", "THRESH_TRIANGLE", "THRESH_DRYRUN")
_TRANSFORMS = tuple(
    f"DFT_{each}"
    for each in ("INVERSE", "SCALE", "ROWS", "COMPLEX_OUTPUT", "REAL_OUTPUT", "COMPLEX_INPUT")
)
_FLAGS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "interpolation": ("INTER_", ("WARP_RELATIVE_MAP",)),
    "flags": ("INTER_", _WARPS),
    "borderType": ("BORDER_", ("BORDER_ISOLATED",)),
    "borderMode": ("BORDER_", ("BORDER_ISOLATED",)),
    "code": ("COLOR_", ()),
    "normType": ("NORM_", ("NORM_RELATIVE",)),
    "norm_type": ("NORM_", ("NORM_RELATIVE",)),
    "cmpop": ("CMP_", ()),
    "op": ("MORPH_", ()),
    "method": ("TM_", ()),
    "adaptiveMethod": ("ADAPTIVE_THRESH_", ()),
    "thresholdType": ("THRESH_", _THRESHOLDS),
    "type": ("THRESH_", _THRESHOLDS),
    "rtype": ("REDUCE_", ()),
    "rotateCode": ("ROTATE_", ()),
    "colormap": ("COLORMAP_", ()),
    "hint": ("ALGO_HINT_", ()),
}
# Where one of these means something else to a function.
_OWN: Mapping[tuple[str, str], tuple[str, tuple[str, ...]]] = {
    ("warpPolar", "flags"): ("INTER_", _POLAR),
    ("dft", "flags"): ("", _TRANSFORMS),
    ("idft", "flags"): ("", _TRANSFORMS),
}
# Names of the same numbers with another meaning: masks, sizes of tables, shapes of kernels.
_OTHERS = re.compile(r"INTER_(BITS|MAX|TAB)|_MASK$|MORPH_(RECT|CROSS|ELLIPSE|DIAMOND)$|_MAX$")
_DEPTHS = frozenset({"ddepth", "dtype", "sdepth"})
_DEPTH = re.compile(r"CV_(8|16|32|64)(U|S|F|BF)(C[1-4])?|CV_Bool")


@cache
def flag_name(function: str, parameter: str, value: int) -> str:
    """Return OpenCV's name of a flag, or of several that are combined; empty if it has none.

    Args:
        function: OpenCV's name of the function.
        parameter: That of the parameter.
        value: The number that is given for it.
    """
    if parameter in _DEPTHS:
        return min((name for name in _named(_DEPTH.fullmatch, value)), key=len, default="")
    prefix, more = _OWN.get((function, parameter)) or _FLAGS.get(parameter, ("", ()))
    if value < 0 or not (prefix or more):
        return ""
    if prefix and (own := _with_prefix(prefix, value)):
        return own
    names = [name for name in more if value & getattr(cv2, name, 0)]
    rest = value - sum(getattr(cv2, name) for name in names)
    if rest or (prefix and names):
        own = _with_prefix(prefix, rest) if prefix else ""
        if not own:
            return ""
        names.append(own)
    return " | ".join(names)


def _with_prefix(prefix: str, value: int) -> str:
    names = _named(lambda name: name.startswith(prefix) and not _OTHERS.search(name), value)
    return next(names, "")


def _named(is_one: Callable[[str], object], value: int) -> Iterator[str]:
    return (name for name in dir(cv2) if is_one(name) and getattr(cv2, name) == value)
