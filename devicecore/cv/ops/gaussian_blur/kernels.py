"""Triton kernels of wide Gaussian blurs: in one pass, or along rows and then columns."""

from __future__ import annotations

import triton
import triton.language as tl

from devicecore.cv.triton_support.kernels.strips import passed
from devicecore.cv.triton_support.kernels.swar import bordered, pair
from devicecore.cv.triton_support.kernels.weighted_sums import split

# A float of this and a whole number of 16 bits has that number in its lowest bits.
_FLOATS, _LEAST = tl.constexpr(0x4B000000), tl.constexpr(8388608.0)


@triton.jit
def _pairs(
    words,
    given,
    TAPS: tl.constexpr,
    CHANNELS: tl.constexpr,
    BEFORE: tl.constexpr,
    GROUP: tl.constexpr,
):
    """Return sums of the pixels of a row, for both pairs of each word; they have 16 bits each.

    Args:
        words: Of the row.
        given: A tuple, the first of which are the weights of pixels 0, 1, 2, ... from the middle.
        TAPS: How many pixels are summed.
        CHANNELS: Of an image.
        BEFORE: How many words lie left of the first group.
        GROUP: How many words are in it.
    """
    even, odd = split(words)
    result = ()
    for word in tl.static_range(GROUP):
        for start in tl.static_range(2):
            total = pair(even, odd, start, BEFORE + word) * given[0].to(tl.uint32)
            for far in tl.static_range(1, TAPS // 2 + 1):
                left = pair(even, odd, start - far * CHANNELS, BEFORE + word)
                right = pair(even, odd, start + far * CHANNELS, BEFORE + word)
                total += (left + right) * given[far].to(tl.uint32)
            result = result + (total,)  # noqa: RUF005 - Triton knows no unpacking
    return result


@triton.jit
def _halves(
    words,
    given,
    SETTINGS: tl.constexpr,
    _NATIVE: tl.constexpr,
    CHANNELS: tl.constexpr,
    BEFORE: tl.constexpr,
    GROUP: tl.constexpr,
):
    return _pairs(words, given, SETTINGS[0], CHANNELS, BEFORE, GROUP)


@triton.jit
def _in_order(
    window,
    _given,
    _SETTINGS: tl.constexpr,
    _NATIVE: tl.constexpr,
    GROUP: tl.constexpr,
    _STEP: tl.constexpr,
):
    """Return the sums of a row, two in a word."""
    result = ()
    for word in tl.static_range(GROUP):
        low, high = window[0][2 * word], window[0][2 * word + 1]
        result = result + ((low & 0xFFFF) | (high << 16), (low >> 16) | (high & 0xFFFF0000))  # noqa: RUF005 - Triton knows no unpacking
    return result


@triton.jit
def _floats(
    words,
    given,
    SETTINGS: tl.constexpr,
    _NATIVE: tl.constexpr,
    CHANNELS: tl.constexpr,
    BEFORE: tl.constexpr,
    GROUP: tl.constexpr,
):
    """Return the sums of a row as bits of floats, in the order of the bytes."""
    both = _pairs(words, given, SETTINGS[0], CHANNELS, BEFORE, GROUP)
    result = ()
    for word in tl.static_range(GROUP):
        for byte in tl.static_range(4):
            whole = (both[2 * word + byte % 2] >> (byte // 2 * 16)) & 0xFFFF
            value = (whole | _FLOATS).to(tl.float32, bitcast=True) - _LEAST
            result = result + (value.to(tl.uint32, bitcast=True),)  # noqa: RUF005 - the same
    return result


@triton.jit
def _rounded(
    window,
    given,
    SETTINGS: tl.constexpr,
    _NATIVE: tl.constexpr,
    GROUP: tl.constexpr,
    _STEP: tl.constexpr,
):
    """Return words of the sums of rows: multiples of 2**-16 below 256, which float32 has."""
    half: tl.constexpr = SETTINGS[0] // 2 + 1
    middle: tl.constexpr = SETTINGS[1] // 2
    result = ()
    for word in tl.static_range(GROUP):
        joint = tl.full(window[0][0].shape, 0, tl.uint32)
        for byte in tl.static_range(4):
            total = tl.full(joint.shape, 0.5, tl.float32)
            for line in tl.static_range(len(window)):
                row = window[line]
                own = row[4 * word + byte].to(tl.float32, bitcast=True)
                total = tl.fma(own, given[half + max(line - middle, middle - line)], total)
            joint |= total.to(tl.int32).to(tl.uint32) << (8 * byte)
        result = result + (joint,)  # noqa: RUF005 - Triton knows no unpacking
    return result


@triton.jit
def _loaded(weights, COUNT: tl.constexpr):
    result = ()
    for place in tl.static_range(COUNT):
        result = result + (tl.load(weights + place),)  # noqa: RUF005 - Triton knows no unpacking
    return result


@triton.jit(do_not_specialize=["height", "length", "words", "groups", "ends", "others"])
def blur_rows(
    source,
    target,
    height,
    length,
    words,
    groups,
    ends,
    others,
    across,
    SETTINGS: tl.constexpr,
    BORDER: tl.constexpr,
    VALUES: tl.constexpr,
    KEPT: tl.constexpr,
    TOP: tl.constexpr,
    NATIVE: tl.constexpr,
    CHANNELS: tl.constexpr,
    BEFORE: tl.constexpr,
    AFTER: tl.constexpr,
    GROUP: tl.constexpr,
    SIZE: tl.constexpr,
    ROWS: tl.constexpr,
    STEP: tl.constexpr,
    AHEAD: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Sum the pixels around each one of a row by weight, to 16 bits; see `passed` for arguments.

    *across* are weights from the middle on, int32 and 256 in all; SETTINGS are how many there are.
    """
    passed(
        source,
        target,
        height,
        length,
        words,
        groups,
        ends,
        others,
        _loaded(across, SETTINGS[0] // 2 + 1),
        _halves,
        _in_order,
        SETTINGS,
        VALUES,
        KEPT,
        TOP,
        BORDER,
        NATIVE,
        CHANNELS,
        BEFORE,
        AFTER,
        GROUP,
        SIZE,
        ROWS,
        STEP,
        AHEAD,
        BLOCK,
    )


@triton.jit(do_not_specialize=["height", "length", "words", "groups", "ends", "others"])
def blur(
    source,
    target,
    height,
    length,
    words,
    groups,
    ends,
    others,
    across,
    down,
    SETTINGS: tl.constexpr,
    BORDER: tl.constexpr,
    VALUES: tl.constexpr,
    KEPT: tl.constexpr,
    TOP: tl.constexpr,
    NATIVE: tl.constexpr,
    CHANNELS: tl.constexpr,
    BEFORE: tl.constexpr,
    AFTER: tl.constexpr,
    GROUP: tl.constexpr,
    SIZE: tl.constexpr,
    ROWS: tl.constexpr,
    STEP: tl.constexpr,
    AHEAD: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Sum the pixels around each one of a row by weight, and these sums in columns.

    See `passed` for most arguments. *across* are weights from the middle on, int32 and 256 in all,
    and *down* are float32 and one in all; SETTINGS are how many of these and of those there are.
    """
    passed(
        source,
        target,
        height,
        length,
        words,
        groups,
        ends,
        others,
        _loaded(across, SETTINGS[0] // 2 + 1) + _loaded(down, SETTINGS[1] // 2 + 1),
        _floats,
        _rounded,
        SETTINGS,
        VALUES,
        KEPT,
        TOP,
        BORDER,
        NATIVE,
        CHANNELS,
        BEFORE,
        AFTER,
        GROUP,
        SIZE,
        ROWS,
        STEP,
        AHEAD,
        BLOCK,
    )


@triton.jit
def blur_columns(
    source,  # 16 bits for each byte of images, each (height, length)
    target,
    height,
    length,
    weights,  # float32, one in all
    TAPS: tl.constexpr,
    BORDER: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Sum the values around each one of a column by weight, and round them to bytes.

    All sums are multiples of 2**-16 below 256, which float32 has.
    """
    image = tl.program_id(2).to(tl.int64) * height * length
    x = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    top = tl.program_id(1) * ROWS
    taps = ()
    for tap in tl.static_range(TAPS):
        taps = taps + (tl.load(weights + tap),)  # noqa: RUF005 - Triton knows no unpacking
    rows = ()
    for step in tl.static_range(ROWS + TAPS - 1):
        y = bordered(top + (step - TAPS // 2), height, BORDER)
        own = tl.load(source + image + y * length + x, mask=x < length, other=0)
        rows = rows + ((own.to(tl.int32) & 0xFFFF).to(tl.float32),)  # noqa: RUF005 - the same
        if step >= TAPS - 1:
            total = tl.full((BLOCK,), 0.5, tl.float32)
            for tap in tl.static_range(TAPS):
                total = tl.fma(rows[step - TAPS + 1 + tap], taps[tap], total)
            y = top + (step - TAPS + 1)
            byte = total.to(tl.int32).to(tl.uint8)
            tl.store(target + image + y * length + x, byte, mask=(x < length) & (y < height))
