"""Helpers of pixel kernels: four pixels at a time, which are as many words as channels.

A thread that reads and writes words of four bytes needs a quarter of the instructions that it needs
for bytes. Float32 numbers of bytes are made from their bits: converting integers is slow on a GPU.
"""

from __future__ import annotations

import triton
import triton.language as tl

# Added to a small float32, it leaves the nearest whole number, half to even, in the last bits.
ROUNDING, _ROUNDING_BITS = tl.constexpr(12582912.0), tl.constexpr(0x4B400000)
# 2**23 in float32, whose last bits are free for a byte, and its bits.
PLACE, _PLACE_BITS = tl.constexpr(8388608.0), tl.constexpr(0x4B000000)


@triton.jit
def load_four(source, group, inside, CHANNELS: tl.constexpr):
    """Return a tuple of the words of four pixels.

    Args:
        source: Pointer to int32, to the first of all pixels.
        group: Which four pixels.
        inside: Whether they are there.
        CHANNELS: Bytes of a pixel.
    """
    words = ()
    for place in tl.static_range(CHANNELS):
        word = tl.load(source + group * CHANNELS + place, mask=inside, other=0)
        words = words + (word,)  # noqa: RUF005 - Triton knows no unpacking
    return words


@triton.jit
def store_four(target, group, inside, values, CHANNELS: tl.constexpr):
    """Write four pixels, of which *values* are the bytes one after the other, in int32."""
    for place in tl.static_range(CHANNELS):
        word = values[4 * place] | (values[4 * place + 1] << 8)
        word |= (values[4 * place + 2] << 16) | (values[4 * place + 3] << 24)
        tl.store(target + group * CHANNELS + place, word, mask=inside)


@triton.jit
def byte(words, PLACE: tl.constexpr):
    """Return one byte of a tuple of words, as int32."""
    return (words[PLACE // 4] >> (8 * (PLACE % 4))) & 255


@triton.jit
def as_placed(value):
    """Return float32 numbers of bytes that are int32, each more by `PLACE`."""
    return (value | _PLACE_BITS).to(tl.float32, bitcast=True)


@triton.jit
def as_float(value):
    """Return float32 numbers of bytes that are int32."""
    return as_placed(value) - PLACE


@triton.jit
def rounded(value):
    """Return whole float32 numbers, half to even."""
    return (value + ROUNDING) - ROUNDING


@triton.jit
def as_integer(value):
    """Return float32 numbers below 2**21 in size as int32, half to even, by their bits."""
    return (value + ROUNDING).to(tl.int32, bitcast=True) - _ROUNDING_BITS


@triton.jit
def last_byte(value):
    """Return the last bits of float32 numbers that are more by `ROUNDING` or `PLACE`, as int32."""
    return value.to(tl.int32, bitcast=True) & 255


@triton.jit
def saturated(value):
    """Return float32 numbers as bytes, half to even, in int32."""
    return last_byte(tl.minimum(tl.maximum(value, 0.0), 255.0) + ROUNDING)


@triton.jit
def cut(value):
    """Return int32 numbers cut to what a byte holds."""
    return tl.minimum(tl.maximum(value, 0), 255)


@triton.jit
def reciprocal(value, NATIVE: tl.constexpr):
    """Return about one by *value*; by one instruction where the GPU has it."""
    if NATIVE:
        return tl.inline_asm_elementwise(
            "rcp.approx.ftz.f32 $0, $1;", "=f,f", [value], dtype=tl.float32, is_pure=True, pack=1
        )
    return 1.0 / value


@triton.jit
def load_pair(source, at, wanted, CHANNELS: tl.constexpr):
    """Return a tuple of words with the bytes of two neighbouring pixels.

    Args:
        source: Pointer to int32.
        at: Byte where the first of the two begins.
        wanted: Whether they are read.
        CHANNELS: Bytes of a pixel.
    """
    start = source + (at >> 2)
    over = at & 3
    words = ()
    for place in tl.static_range((2 * CHANNELS + 6) // 4):
        there = wanted if place == 0 else wanted & (over + 2 * CHANNELS > 4 * place)
        words = words + (tl.load(start + place, mask=there, other=0),)  # noqa: RUF005 - no unpacking
    moved = ()
    for place in tl.static_range((2 * CHANNELS + 3) // 4):
        low = (words[place].to(tl.uint32, bitcast=True) >> (8 * over)).to(tl.int32, bitcast=True)
        if place + 1 < (2 * CHANNELS + 6) // 4:
            low |= (words[place + 1] << 1) << (31 - 8 * over)
        moved = moved + (low,)  # noqa: RUF005 - no unpacking
    return moved


@triton.jit
def place_bits(NATIVE: tl.constexpr):
    """Return the bits of `PLACE` for `placed`.

    What is not known to be a constant stays in one register: of a constant, the assembler would
    rather make each pattern of `placed` a register, again and again.
    """
    if NATIVE:
        # No grid has 2**31 programs.
        code: tl.constexpr = """{
            .reg .b32 none;
            mov.b32 none, %nctaid.x;
            shr.u32 none, none, 31;
            or.b32 $0, none, $1;
        }"""
        return tl.inline_asm_elementwise(
            code, "=r,r", [_PLACE_BITS], dtype=tl.int32, is_pure=True, pack=1
        )
    return _PLACE_BITS


@triton.jit
def placed(word, bits, BYTE: tl.constexpr, NATIVE: tl.constexpr):
    """Return a byte of words of 32 bits as float32, more by `PLACE`.

    Args:
        word: The words.
        bits: Those of `place_bits`.
        BYTE: Which of their bytes, the lowest first.
        NATIVE: Whether the GPU is NVIDIA's, which does it by one instruction.
    """
    if NATIVE:
        # Of the constant, byte 4 is nothing and byte 7 its highest.
        code: tl.constexpr = f"prmt.b32 $0, $1, $2, 0x744{BYTE};"
        return tl.inline_asm_elementwise(
            code, "=f,r,r", [word, bits], dtype=tl.float32, is_pure=True, pack=1
        )
    return as_placed(((word >> (8 * BYTE)) & 255).to(tl.int32))


@triton.jit
def saturated_word(a, b, c, d, NATIVE: tl.constexpr):
    """Return words of four int32 numbers each, cut to what a byte holds, the lowest byte first."""
    if NATIVE:
        code: tl.constexpr = """{
            .reg .b32 upper;
            cvt.pack.sat.u8.s32.b32 upper, $4, $3, 0;
            cvt.pack.sat.u8.s32.b32 $0, $2, $1, upper;
        }"""
        return tl.inline_asm_elementwise(
            code, "=r,r,r,r,r", [a, b, c, d], dtype=tl.int32, is_pure=True, pack=1
        )
    return cut(a) | (cut(b) << 8) | (cut(c) << 16) | (cut(d) << 24)


@triton.jit
def bytes_of(a, b, CODE: tl.constexpr, NATIVE: tl.constexpr):
    """Return words of four bytes of two words of 32 bits, or of float32.

    Args:
        a: Words, of which the bytes are 0 to 3.
        b: Words, of which the bytes are 4 to 7.
        CODE: Four numbers of four bits each: which byte is the lowest one, and so on.
        NATIVE: Whether the GPU is NVIDIA's, which does it by one instruction.
    """
    a, b = a.to(tl.int32, bitcast=True), b.to(tl.int32, bitcast=True)
    if NATIVE:
        code: tl.constexpr = f"prmt.b32 $0, $1, $2, {CODE};"
        return tl.inline_asm_elementwise(
            code, "=r,r,r", [a, b], dtype=tl.int32, is_pure=True, pack=1
        )
    result = byte((a, b), CODE & 7)
    for place in tl.static_range(1, 4):
        result |= byte((a, b), (CODE >> (4 * place)) & 7) << (8 * place)
    return result


@triton.jit
def floor_placed(value, NATIVE: tl.constexpr):
    """Return the whole numbers below float32 numbers from 0 to 2**21, more by `ROUNDING`."""
    if NATIVE:
        return tl.inline_asm_elementwise(
            "add.rm.f32 $0, $1, 0f4B400000;",
            "=f,f",
            [value],
            dtype=tl.float32,
            is_pure=True,
            pack=1,
        )
    whole = value + ROUNDING
    return tl.where(whole - ROUNDING > value, whole - 1.0, whole)


@triton.jit
def moved_down(low, high, over, NATIVE: tl.constexpr):
    """Return four bytes of the eight of two words, *over* bytes (modulo 4) after the first one."""
    if NATIVE:
        return tl.inline_asm_elementwise(
            "shf.r.wrap.b32 $0, $1, $2, $3;",
            "=r,r,r,r",
            [low, high, over * 8],
            dtype=tl.int32,
            is_pure=True,
            pack=1,
        )
    bits = (over & 3) * 8
    upper = (high << 1) << (31 - bits)
    return (low.to(tl.uint32, bitcast=True) >> bits).to(tl.int32, bitcast=True) | upper


@triton.jit
def four_of(pixels):
    """Return a tuple of four tensors (groups) of one (groups, 2, 2)."""
    even, odd = tl.split(pixels)
    first, third = tl.split(even)
    second, last = tl.split(odd)
    return first, second, third, last


@triton.jit
def group_of(pixels, CHANNELS: tl.constexpr, NATIVE: tl.constexpr):
    """Return the bytes of four pixels as a tuple of as many words as channels.

    Args:
        pixels: A tuple of four, of which the lower bytes are the channels.
        CHANNELS: Bytes of a pixel.
        NATIVE: Whether the GPU is NVIDIA's.
    """
    first, second, third, last = pixels
    if CHANNELS == 1:
        begin = bytes_of(first, second, 0x0040, NATIVE)
        words = (bytes_of(begin, bytes_of(third, last, 0x0040, NATIVE), 0x5410, NATIVE),)
    elif CHANNELS == 2:
        begin = bytes_of(first, second, 0x5410, NATIVE)
        words = (begin, bytes_of(third, last, 0x5410, NATIVE))
    elif CHANNELS == 3:
        begin = bytes_of(first, second, 0x4210, NATIVE)
        middle = bytes_of(second, third, 0x5421, NATIVE)
        words = (begin, middle, bytes_of(third, last, 0x6542, NATIVE))
    else:
        words = (first, second, third, last)
    return words


@triton.jit
def pixels_of(words, CHANNELS: tl.constexpr, NATIVE: tl.constexpr):
    """Return what `group_of` makes words of; above the channels are other bytes."""
    begin = words[0]
    if CHANNELS == 1:
        second = bytes_of(begin, begin, 0x1111, NATIVE)
        third = bytes_of(begin, begin, 0x2222, NATIVE)
        pixels = (begin, second, third, bytes_of(begin, begin, 0x3333, NATIVE))
    elif CHANNELS == 2:
        second = bytes_of(begin, begin, 0x3232, NATIVE)
        pixels = (begin, second, words[1], bytes_of(words[1], words[1], 0x3232, NATIVE))
    elif CHANNELS == 3:
        second = bytes_of(begin, words[1], 0x5543, NATIVE)
        third = bytes_of(words[1], words[2], 0x4432, NATIVE)
        pixels = (begin, second, third, bytes_of(words[2], words[2], 0x3321, NATIVE))
    else:
        pixels = words
    return pixels
