"""Steps of programs that calculate with the values of arrays, as augmentations do."""

# ruff: noqa: PLW0108 - steps of programs are written as programs write them

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

NAN = float("nan")


def noise(x: Any, dtype: str = "float32", scale: float = 40.0) -> Any:
    """Return an array of the host as large as another one; some of its zeros are negative."""
    drawn = np.random.default_rng(5).normal(0, scale, x.shape)
    return np.where(np.abs(drawn) < scale / 4, -0.0, drawn).astype(dtype)


def _mask(x: Any) -> Any:
    return np.random.default_rng(6).random(x.shape) < 0.5


def _float(x: Any) -> Any:
    return x.astype(np.float32)


def _noisy(x: Any) -> Any:
    return _float(x) * np.float32(-0.5) + noise(x)


def _planes(x: Any) -> Any:
    return np.moveaxis(x, -1, 0)


def _in_place(x: Any, other: Any) -> Any:
    values = _float(x)
    values += other
    return values


def _clip_out(values: Any) -> Any:
    return np.clip(values, 0, 1, out=values)


VALUES: dict[str, Callable[..., Any]] = {
    "noise": lambda x, y: np.clip(_float(x) + noise(x), 0, 255).astype(np.uint8),
    "noise64": lambda x, y: np.clip(x + noise(x, "float64"), 0, 255).astype(np.uint8),
    "noise_reflected": lambda x, y: (noise(x) + x).clip(0, 255).astype("uint8"),
    "noise_in_place": lambda x, y: _in_place(x, noise(x)),
    "noise64_in_place": lambda x, y: _in_place(x, noise(x, "float64")),
    "noise_tiny": lambda x, y: _float(x) + noise(x, scale=1e-42),
    "noise_large": lambda x, y: _float(x) * noise(x, scale=1e35),
    "noise_nan": lambda x, y: _float(x) + np.where(_mask(x), np.nan, noise(x)),
    "noise_turned": lambda x, y: _float(x) + noise(x.T).T,
    "noise_plane": lambda x, y: _float(x) + noise(x[..., :1]),
    "noise_row": lambda x, y: _float(x) * noise(x[0]),
    "noise_int": lambda x, y: _float(x) + _mask(x).astype(np.int16),
    "clip_f": lambda x, y: np.clip(_noisy(x), 0, 255),
    "clip_zero": lambda x, y: np.clip(_noisy(x), -255, -0.0),
    "clip_fraction": lambda x, y: np.clip(_noisy(x), 0.1, 99.9),
    "clip_double": lambda x, y: np.clip(_noisy(x), np.float64(0.1), 99),
    "clip_crossed": lambda x, y: np.clip(_noisy(x), 9, 3),
    "clip_arrays": lambda x, y: np.clip(_noisy(x), y, 300),
    "clip_row": lambda x, y: np.clip(_noisy(x), np.arange(x.shape[-1]), 300),
    "clip_int": lambda x, y: np.clip(x.astype(np.int16), -3, 99).astype(np.uint8),
    "clip_bound": lambda x, y: np.clip(x.astype(np.int16), -3, 40000),
    "clip_out": lambda x, y: _clip_out(_noisy(x)),
    "clip_out_x": lambda x, y: np.clip(x, 0, 1, out=x),
    "clip_out_y": lambda x, y: np.clip(x, 3, 9, out=y),
    "clip_turned": lambda x, y: np.clip(_noisy(x).T, 0, 9).astype(np.uint8),
    "cast_wide": lambda x, y: (_float(x) + 0.99999999).astype(np.uint8),
    "cast_low": lambda x, y: (np.clip(_float(x), 0, 9) - 0.5).astype(np.uint8),
    "cast_int": lambda x, y: (_noisy(x) * 1e5).astype(np.int32),
    "cast_long": lambda x, y: (_noisy(x) * 1e5).astype(np.int64),
    "cast_double": lambda x, y: (x * np.float64(1 / 3) - noise(x, "float64")).astype(np.float32),
    "cast_same": lambda x, y: _noisy(x)[::-1].astype(np.float32),
    "cast_turned": lambda x, y: _noisy(x).T.astype(np.float64),
    "scaled_turned": lambda x, y: (_noisy(x).T - 0.5) / 0.25,
    "minimum": lambda x, y: np.minimum(_noisy(x), 20),
    "maximum": lambda x, y: np.maximum(_noisy(x), 0),
    "maximum_least": lambda x, y: np.maximum(_noisy(x), 1e-6),
    "minimum_y": lambda x, y: np.minimum(x, y),
    "maximum_noise": lambda x, y: np.maximum(x, noise(x)),
    "rint": lambda x, y: np.clip(np.rint(_float(x) / 2), 0, 255).astype(np.uint8),
    "rint_noise": lambda x, y: np.rint(_noisy(x)),
    "round0": lambda x, y: np.round(_noisy(x)),
    "round1": lambda x, y: np.round(_noisy(x), 1),
    "round_x": lambda x, y: np.around(x),
    "abs_f": lambda x, y: np.abs(_noisy(x)),
    "neg_f": lambda x, y: -_noisy(x),
    "sharpened": lambda x, y: (np.abs(_noisy(x)) * 255 > 10).astype(np.float32),
    "solarized": lambda x, y: np.where(x >= 128, 255 - x, x),
    "solarized_f": lambda x, y: np.where(_float(x) >= 99.5, 255 - _float(x), _float(x)),
    "salt": lambda x, y: np.where(_mask(x), 255, np.where(~_mask(x), 0, x)),
    "salt_plane": lambda x, y: np.where(_mask(x[..., :1]), x, 7),
    "salt_row": lambda x, y: np.where(_mask(x[..., 0]), x[..., 0], y[..., 0]),
    "dropped": lambda x, y: np.where(_mask(x), np.zeros_like(x), x),
    "where_types": lambda x, y: np.where(x > 9, x, _noisy(x)),
    "where_number": lambda x, y: np.where(x > 9, 0.1, 3),
    "where_over": lambda x, y: np.where(x > 9, 300, x),
    "where_other": lambda x, y: np.where(x, x, y),
    "where_one": lambda x, y: np.where(x > 100)[0],
    "compare": lambda x, y: [x > 9, _float(x) >= 9, x == y, x != 3.5, x < np.int16(300)],
    "compare_noise": lambda x, y: _float(x) <= noise(x, "float64"),
    "compare_over": lambda x, y: [x > 300, x < -1, x == 1e300, x >= NAN],
    "compare_none": lambda x, y: [x == None, x != "a"],  # noqa: E711
    "masks": lambda x, y: ((x > 9) & (x < 99)) | ~(x == 3),
    "masked_by": lambda x, y: (x > 9) * _float(x),
    "masks_with": lambda x, y: (x > 9) & _mask(x),
    "masks_true": lambda x, y: (x > 9) & True,
    "joined": lambda x, y: np.dstack([x[..., 0], y[..., 0], x[..., 0]]),
    "joined_f": lambda x, y: np.stack([_noisy(x), _float(x)], axis=-1),
    "joined_first": lambda x, y: np.stack((x, x[::-1])),
    "joined_beside": lambda x, y: np.hstack((x[:, :2], y[:, 2:])),
    "joined_below": lambda x, y: np.vstack([_noisy(x), _noisy(y)]),
    "joined_turned": lambda x, y: np.concatenate([x.T, x.T]),
    "joined_planes": lambda x, y: np.stack([_planes(x), _planes(y)]),
    "joined_planes_last": lambda x, y: np.stack([_planes(x), _planes(_float(y).astype("u1"))], -1),
    "joined_planes_channels": lambda x, y: np.concatenate([_planes(x), _planes(y)[:1]]),
    "joined_planes_whole": lambda x, y: np.stack([_planes(x), _planes(x).copy()], 1),
    "joined_planes_in_place": lambda x, y: _in_place(np.stack([_planes(x)] * 2), 0.5),
    "joined_planes_scaled": lambda x, y: np.stack([_planes(x), _planes(y)]) / np.float32(255),
    "joined_depth_turned": lambda x, y: np.dstack([x[..., 0].T] * 3)[::-1],
    "joined_beside_turned": lambda x, y: np.hstack([x.T, y[::-1].T]),
    "joined_below_turned": lambda x, y: np.vstack([np.rot90(x), np.rot90(x)[:1]]),
    "joined_turned_two_ways": lambda x, y: np.stack([x.T, np.moveaxis(_planes(y).copy(), -1, 1)]),
    "joined_one": lambda x, y: np.stack([_planes(x)[:, :1]]),
    "joined_other_lengths": lambda x, y: np.stack([_planes(x), _planes(x)[:, :0]]),
    "joined_types": lambda x, y: np.concatenate([x, _float(x)], axis=-1),
    "joined_no_axis": lambda x, y: np.concatenate([x, x], axis=9),
    "joined_flat": lambda x, y: np.concatenate([x, x], axis=None),
    "joined_with": lambda x, y: np.dstack([x, noise(x)]),
    "joined_empty": lambda x, y: np.concatenate([]),
    "turned": lambda x, y: [np.rot90(x, k) for k in range(-1, 4)],
    "turned_axes": lambda x, y: np.rot90(x, 1, (1, 0)),
    "turned_wrong": lambda x, y: np.rot90(x, 1, (0, 0)),
}
"""Each is given two arrays, which may be one."""
