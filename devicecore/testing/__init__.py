"""For the tests of backends and of programs that use them.

What needs ``onnx`` is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from devicecore.optional import import_own
from devicecore.testing.fake import FakeFactory

if TYPE_CHECKING:
    from devicecore.testing.onnx_backend import OnnxBackend as OnnxBackend
    from devicecore.testing.onnx_suite import CaseResult as CaseResult
    from devicecore.testing.onnx_suite import run_onnx_suite as run_onnx_suite

# Which module each name that is imported late comes from.
_HOMES = {
    "CaseResult": "onnx_suite",
    "OnnxBackend": "onnx_backend",
    "run_onnx_suite": "onnx_suite",
}

__all__ = ["CaseResult", "FakeFactory", "OnnxBackend", "run_onnx_suite"]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_own(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
