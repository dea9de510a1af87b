"""Self-tests see images of all layouts, not only of those that each operation samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from devicecore import default_manager
from devicecore.cv import catalog
from devicecore.cv.sample_layouts import CHANNELS, samples_of_channels, samples_of_sizes
from devicecore.cv.self_test import run_self_test, self_test_channels

pytest.importorskip("torch")

BY_LAYOUT = ("GaussianBlur", "add", "dilate", "flip", "resize", "warpAffine", "Sobel", "threshold")


def cpu() -> Any:
    return default_manager().host_cpu


def operation(name: str, label: str = "torch") -> Any:
    found = catalog.find(name, label)
    assert found is not None
    return found


@pytest.mark.parametrize("name", BY_LAYOUT)
def test_layouts_cover_channels_sizes_and_strides(name: str) -> None:
    images = [args[0] for args, _ in samples_of_channels(operation(name), CHANNELS)]
    assert {1 if image.ndim == 2 else image.shape[2] for image in images} == {1, 2, 3, 4, 5, 8}
    images = [args[0] for args, _ in samples_of_sizes(operation(name))]
    sizes = {image.shape[:2] for image in images}
    assert (1, 1) in sizes
    assert {size[0] % 2 for size in sizes} == {0, 1}
    assert any(not image.flags.c_contiguous for image in images)


@pytest.mark.parametrize("name", sorted(catalog.TORCH))
def test_every_kernel_keeps_its_promise_on_all_layouts(name: str) -> None:
    assert run_self_test(operation(name), cpu()) == ""


@pytest.mark.parametrize("name", sorted(catalog.KORNIA))
def test_kornia_is_asked_only_for_what_it_takes(name: str) -> None:
    pytest.importorskip("kornia")
    assert run_self_test(operation(name, "kornia"), cpu()) == ""


@pytest.mark.parametrize("channels", [5, 8])
def test_a_kernel_that_is_wrong_for_many_channels_is_set_aside(
    channels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    flip = operation("flip")
    run = type(flip).run

    def wrong(self: Any, device: Any, /, *args: Any, **kwargs: Any) -> Any:
        result = run(self, device, *args, **kwargs)
        return result + 1 if args[0].ndim == 3 and args[0].shape[2] == channels else result

    monkeypatch.setattr(type(flip), "run", wrong)
    assert "other values than promised" in run_self_test(flip, cpu())
    assert "other values than promised" in self_test_channels(flip, cpu(), (channels,))
    assert self_test_channels(flip, cpu(), (3,)) == ""


def test_samples_are_not_changed() -> None:
    before = [np.copy(args[0]) for args, _ in operation("flip").examples()]
    list(samples_of_sizes(operation("flip")))
    list(samples_of_channels(operation("flip"), CHANNELS))
    after = [args[0] for args, _ in operation("flip").examples()]
    assert all(np.array_equal(*pair) for pair in zip(before, after, strict=True))
