"""Reads the state of NumPy's generator, only when it may have changed.

Reading it takes longer than recording several calls, and most frames draw no such numbers.
"""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import numpy as np

# Of the Mersenne Twister: 624 words and a position, as numpy's documented address leads to.
_BYTES = 625 * 4


class _LastState(threading.local):
    """What was read last by this thread."""

    def __init__(self) -> None:
        self.state: Any = None
        self.words = b""
        self.generator: Any = None


_known = _LastState()


def numpy_state() -> Any:
    """Return what ``numpy.random.set_state`` takes, as of now."""
    random: Any = np.random  # its types leave this function out
    generator = random.get_bit_generator()
    words = b""
    if type(generator) is np.random.MT19937:
        words = ctypes.string_at(generator.ctypes.state_address, _BYTES)
        is_same = generator is _known.generator and words == _known.words
        # A second normal number may be waiting; it is drawn without a change of the words.
        if is_same and _known.state[3] == 0:
            return _known.state
    _known.state, _known.words, _known.generator = random.get_state(), words, generator
    return _known.state
