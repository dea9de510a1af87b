"""`integer_means`: integer means, rounded as products with a float64 inverse are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from devicecore.cv.table import Table
from devicecore.cv.torch_support.dtypes import quotient_and_rest
from devicecore.cv.torch_support.pixels import lookup_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    Tensor = torch.Tensor

_OVERFLOW = 1 << 31


def integer_means(count: int, least: int, most: int) -> Callable[[Tensor], Tensor] | None:
    """Return what makes means of sums of *count* integers from *least* to *most*, as int32.

    The means are ``rint(sum * (1.0 / count))`` in float64, computed without it: only where a mean
    lies between two integers do float64's own roundings show, and a table has these.

    Returns:
        None where the sums do not fit int32.
    """
    if (most - least) * count >= _OVERFLOW:
        return None
    ties = None
    if count % 2 == 0:
        whole = np.arange(least, most + 1)
        sums = (2 * whole + 1) * (count // 2)
        ties = Table((np.rint(sums * (1.0 / count)) - whole).astype(np.int32))

    def means(sums: Tensor) -> Tensor:
        result, rest = quotient_and_rest(sums.to(torch.int32) - least * count, count)
        up = (rest > count - rest).to(torch.int32)
        if ties is not None:
            up = torch.where(rest == count - rest, lookup_rows(ties.on(sums), result), up)
        return result + (up + least)

    return means
