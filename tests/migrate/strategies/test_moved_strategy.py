"""torchaudio and torchvision: their own functions, on tensors that were moved.

Where they are not installed nothing of this is proved.
"""

from __future__ import annotations

import importlib
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from devicecore.migrate import PipelineMigrator  # noqa: E402 - after torch
from devicecore.migrate.strategies import catalog  # noqa: E402
from devicecore.migrate.strategies.torch_strategy import MovedStrategy  # noqa: E402


def module_of(name: str) -> Any:
    """Return a module, or skip where it is not installed, or does not fit this torch."""
    try:
        return importlib.import_module(name)
    except (ImportError, OSError, RuntimeError) as error:
        pytest.skip(f"{name} does not import: {error}")


def by_plan(name: str, accept: str, *args: Any, **kwargs: Any) -> None:
    """Fail unless a function is migrated, and gives what it gives without a plan."""
    module, _, function = name.rpartition(".")
    owner = module_of(module)
    expected = getattr(owner, function)(*args, **kwargs)
    plan = {name: {"device": "cpu", "kernel": "torch", "accept": accept}}
    with PipelineMigrator(plan, strict=True) as migrator:
        found = getattr(owner, function)(*args, **kwargs)
    assert [row.migrated for row in migrator.report().rows] == [1]
    torch.testing.assert_close(found, expected)


WAVE = torch.randn(2, 2000, generator=torch.Generator().manual_seed(0))


def test_functions_of_torchaudio() -> None:
    name = "torchaudio.functional"
    by_plan(f"{name}.resample", "close", WAVE, 16000, 8000)
    by_plan(f"{name}.preemphasis", "tolerance", WAVE)
    by_plan(f"{name}.fftconvolve", "tolerance", WAVE, WAVE[:, :50])
    by_plan(f"{name}.compute_deltas", "close", WAVE)
    window = torch.hann_window(400)
    by_plan(f"{name}.spectrogram", "tolerance", WAVE, 0, window, 400, 200, 400, 2.0, False)
    by_plan(f"{name}.amplitude_to_DB", "tolerance", WAVE.abs(), 10.0, 1e-10, 0.0, 80.0)


IMAGE = torch.randint(0, 256, (3, 40, 30), generator=torch.Generator().manual_seed(0)).byte()


@pytest.mark.parametrize("module", ["transforms.functional", "transforms.v2.functional"])
def test_functions_of_torchvision(module: str) -> None:
    name = f"torchvision.{module}"
    by_plan(f"{name}.hflip", "exact", IMAGE)
    by_plan(f"{name}.pad", "exact", IMAGE, [1, 2])
    by_plan(f"{name}.crop", "exact", IMAGE, 3, 4, 10, 11)
    by_plan(f"{name}.resize", "close", IMAGE, [20, 20], antialias=True)
    by_plan(f"{name}.normalize", "close", IMAGE.float(), [0.5] * 3, [0.2] * 3)
    by_plan(f"{name}.rotate", "close", IMAGE, 30.0)


@pytest.mark.parametrize("package", sorted(catalog.MOVED))
def test_all_of_them_are_there(package: str) -> None:
    module_of(package)
    for name in catalog.MOVED[package]:
        module, _, function = name.rpartition(".")
        owner, _, cls = module.rpartition(".")
        is_method = cls[0].isupper()
        found = getattr(module_of(owner), cls) if is_method else module_of(module)
        assert callable(getattr(found, function))
        assert isinstance(catalog.strategies_of(package)[name], MovedStrategy)
