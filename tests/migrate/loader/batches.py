"""Batches of `DeviceLoader` beside those of torch's own loader."""

from __future__ import annotations

import os
from collections import UserDict
from dataclasses import is_dataclass
from typing import Any

import numpy as np
import torch

from devicecore.migrate import DeviceLoader

TORCH = {"device": "cpu", "kernel": "torch"}
PLAN = {
    "tests.migrate.loader.pictures:prepared": TORCH,
    "tests.migrate.loader.pictures:jittered": TORCH,
}
STARTS = ["fork", "spawn"] if hasattr(os, "fork") else ["spawn"]


def same(found: Any, expected: Any) -> None:
    assert type(found) is type(expected)
    if isinstance(expected, torch.Tensor):
        assert found.dtype == expected.dtype
        assert found.is_contiguous() == expected.is_contiguous()
        assert torch.equal(found, expected)
    elif isinstance(expected, (dict, UserDict)):
        assert list(found) == list(expected)
        for key, value in expected.items():
            same(found[key], value)
    elif isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            same(one, other)
    elif isinstance(expected, np.ndarray):
        assert np.array_equal(found, expected)
    elif is_dataclass(expected):
        same(vars(found), vars(expected))
    else:
        assert found == expected


def both(dataset: Any, plan: Any = None, **options: Any) -> tuple[Any, list[Any]]:
    """Return the loader and what torch's own loader gives, with the same random numbers."""
    ours = {name: options.pop(name) for name in ("verify", "immutable") if name in options}
    np.random.seed(4)  # noqa: NPY002 - programs use it
    torch.manual_seed(4)
    expected = list(torch.utils.data.DataLoader(dataset, batch_size=3, **options))
    np.random.seed(4)  # noqa: NPY002
    torch.manual_seed(4)
    loader = DeviceLoader(dataset, plan or PLAN, batch_size=3, strict=True, **ours, **options)
    assert isinstance(dataset, torch.utils.data.IterableDataset) or len(loader) == len(expected)
    return loader, expected
