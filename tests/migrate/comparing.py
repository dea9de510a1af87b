"""For the tests of strategies: what they compute, and what the function itself returns."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from attrs import frozen

from devicecore.errors import RefusedCallError
from devicecore.migrate import default_strategies
from devicecore.migrate.calls.arrays import find_arrays, is_tensor, move_to_host
from devicecore.migrate.plan.optimization_plan import Options
from devicecore.runtime import host_cpu

if TYPE_CHECKING:
    from collections.abc import Callable

    from devicecore.device import Device
    from devicecore.kernels import Exactness
    from devicecore.migrate.strategies.registry import StrategyRegistry

ROUNDING = {"f": 2e-5, "d": 1e-10}
"""How far floats may be off, as a part of the largest one, by the precision of the result."""


@cache
def registry() -> StrategyRegistry:
    return default_strategies()


@frozen
class Strategies:
    """Calls by the strategies of one module or class.

    Attributes:
        owner: The module.
        name: Its dotted name.
        accept: The loosest promise that is good enough.
        scale: How large the values are that are added up, if that is more than the results.
        rounding: How far floats may be off, where another precision than the result's is used.
        device: Where the calls are computed; None for the host.
    """

    owner: Any
    name: str
    accept: Exactness = "tolerance"
    scale: float = 1
    rounding: float = 0
    device: Device | None = None

    def compute(self, name: str, /, *args: Any, **kwargs: Any) -> Any:
        """Return what the strategy of a function gives."""
        strategy = registry().find(self.name, name)
        assert strategy is not None
        options = Options(kernel="torch", accept=self.accept)
        return strategy.compute(
            self.device or host_cpu(), options, self.function(name), args, kwargs
        )

    def function(self, name: str) -> Any:
        found = self.owner
        for part in name.split("."):
            found = getattr(found, part)
        return found

    def check(self, name: str, /, *args: Any, **kwargs: Any) -> None:
        """Fail unless a call is computed as near as was promised, and much nearer."""
        unchanged = kept(args, kwargs)
        expected = self.function(name)(*args, **kwargs)
        found = self.compute(name, *args, **kwargs)
        assert_near(
            found,
            expected,
            is_exact=self.accept == "exact",
            scale=self.scale,
            rounding=self.rounding,
        )
        unchanged()

    def refuse(self, reason: str, name: str, /, *args: Any, **kwargs: Any) -> None:
        """Fail unless a call is left to the function itself, for that reason."""
        with pytest.raises(RefusedCallError, match=reason):
            self.compute(name, *args, **kwargs)


def assert_near(
    found: Any, expected: Any, *, is_exact: bool, scale: float = 1, rounding: float = 0
) -> None:
    """Fail unless two results are of the same kind, and nearly or exactly the same."""
    assert type(found) is type(expected)
    if isinstance(expected, (tuple, list)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_near(one, other, is_exact=is_exact, scale=scale, rounding=rounding)
        return
    if is_tensor(expected):
        assert found.device == expected.device
        found, expected = move_to_host(found).numpy(), move_to_host(expected).numpy()
    one, other = np.asarray(found), np.asarray(expected)
    assert (one.dtype, one.shape) == (other.dtype, other.shape)
    if is_exact or one.dtype.kind not in "fc":
        np.testing.assert_array_equal(one, other)
        return
    most = float(np.abs(other).max(initial=0, where=np.isfinite(other)))
    limit = (rounding or ROUNDING[one.real.dtype.char]) * max(scale, most)
    np.testing.assert_allclose(one, other, rtol=0, atol=limit)


def kept(*values: Any) -> Callable[[], None]:
    """Return what fails if any of the arrays among some values has changed since."""
    arrays = list(find_arrays(values))
    before = [_bytes(each) for each in arrays]

    def check() -> None:
        assert [_bytes(each) for each in arrays] == before

    return check


def _bytes(array: Any) -> bytes:
    return np.asarray(move_to_host(array)).tobytes()
