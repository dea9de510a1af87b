"""What decides OpenCV's pixels on this machine: its version, IPP, and the processor's FMA."""

from __future__ import annotations

import platform
from functools import cache

import cv2
from attrs import frozen

# OpenCV's numbers of processor features, which its Python module does not name.
_AVX2, _FMA3 = 11, 12
# Those of places for results: OpenCV 5 computes with more types than it binds to numpy's.
_WRITTEN = frozenset({"uint8", "int8", "uint16", "int16", "int32", "float16", "float32", "float64"})
_WRITTEN_SINCE_5 = frozenset({"bool", "uint32"})
_NEWER_TYPES = frozenset({"float16", "bool", "uint32", "int64", "uint64"})


@frozen(cache_hash=True)  # it is part of the key of every call
class Environment:
    """The parts of a machine that OpenCV's results depend on.

    Attributes:
        version: OpenCV's major and minor version.
        uses_ipp: Whether functions that have a variant of Intel's IPP use it.
        has_fma: Whether float arithmetic is fused, as with AVX2.
        machine: The architecture, such as ``"x86_64"``.
        is_inexact: Whether IPP may also be used where it gives other values than OpenCV.
    """

    version: tuple[int, int]
    uses_ipp: bool
    has_fma: bool
    machine: str
    is_inexact: bool = False

    @property
    def has_float_warps(self) -> bool:
        """Whether warps compute coordinates and weights in float, as since OpenCV 5."""
        return self.version >= (5, 0)

    def writes(self, dtype: str) -> bool:
        """Return whether OpenCV takes a place for a result of such a type."""
        return dtype in _WRITTEN or (dtype in _WRITTEN_SINCE_5 and self.version >= (5, 0))

    def knows(self, dtype: str) -> bool:
        """Return whether OpenCV takes arrays of a type that only newer versions take."""
        return dtype not in _NEWER_TYPES or self.version >= (5, 0)

    @property
    def most_channels(self) -> int:
        """How many channels OpenCV takes; an array with more is a volume to it."""
        return 128 if self.version >= (5, 0) else 512

    @property
    def has_float_products(self) -> bool:
        """Whether products, quotients and weighted sums are those of OpenCV 5; 4 rounds others."""
        return self.version >= (5, 0)

    @property
    def is_x86(self) -> bool:
        """Whether results were compared with those of this architecture."""
        return self.machine in {"x86_64", "AMD64"}


def settings() -> tuple[bool, bool, bool]:
    """Return what programs may change of the environment, quickly: a part of keys of calls.

    That is whether `cv2.setUseOptimized` allows what only newer processors have, and whether
    functions of `cv2.ipp` allow IPP, and its values where they are not OpenCV's.
    """
    return cv2.useOptimized(), cv2.ipp.useIPP(), cv2.ipp.useIPP_NotExact()


def environment() -> Environment:
    """Return what holds now."""
    return _environment(*settings())


@cache
def _environment(_is_optimized: bool, uses_ipp: bool, is_inexact: bool) -> Environment:
    major, minor = map(int, cv2.__version__.split(".")[:2])
    has_fma = cv2.checkHardwareSupport(_AVX2) and cv2.checkHardwareSupport(_FMA3)
    return Environment((major, minor), uses_ipp, has_fma, platform.machine(), is_inexact)
