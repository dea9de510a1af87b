"""Sizes for free dimensions, which ONNX Runtime ignores where a model has no such dimension."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from devicecore.errors import ModelError
from devicecore.errors.base import listing
from devicecore.ort.session_attributes import FREE_DIMENSIONS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from devicecore.onnx.model_signature import ValueInfo


def check_free_dimensions(model: str, options: Iterable[str], inputs: Iterable[ValueInfo]) -> None:
    """Look whether the *inputs* of *model* have the free dimensions that *options* name.

    Raises:
        ModelError: One has a name that no dimension has.
    """
    prefix = f"{FREE_DIMENSIONS[0]}."
    wanted = [name.removeprefix(prefix) for name in options if name.startswith(prefix)]
    sizes = [size for each in inputs for size in each.shape or ()]
    known = list(dict.fromkeys(size for size in sizes if isinstance(size, str)))
    for name in wanted:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            fix = f"did you mean {near[0]!r}?" if near else f"it has {listing(map(repr, known))}"
            raise ModelError(model, f"none of its inputs has a free dimension {name!r}", fix)
