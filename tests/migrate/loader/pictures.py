"""Datasets of pictures, as programs have them, for the tests of `DeviceLoader`."""

from __future__ import annotations

from collections import OrderedDict, UserDict
from typing import TYPE_CHECKING, Any, NamedTuple

import cv2
import numpy as np
import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

MEAN = np.array([0.4, 0.5, 0.6], np.float32)
STD = np.array([0.2, 0.3, 0.1], np.float32)


def prepared(image: Any) -> Any:
    """Return the input of a network."""
    image = cv2.cvtColor(cv2.resize(image, (32, 32)), cv2.COLOR_BGR2RGB)
    image = cv2.GaussianBlur(image, (5, 5), 0)
    image = (image.astype(np.float32) / 255 - MEAN) / STD
    return np.ascontiguousarray(image.transpose(2, 0, 1))


def jittered(image: Any) -> Any:
    """Return an image that random numbers have changed."""
    turn = cv2.getRotationMatrix2D((20, 15), float(np.random.uniform(-9, 9)), 1.1)  # noqa: NPY002
    image = cv2.warpAffine(image, turn, (40, 30), borderMode=cv2.BORDER_REFLECT_101)
    hue, saturation, value = cv2.split(cv2.cvtColor(image, cv2.COLOR_BGR2HSV))
    hue = cv2.LUT(hue, ((np.arange(256) + np.random.randint(9)) % 180).astype(np.uint8))  # noqa: NPY002
    value = cv2.createCLAHE(2.0, (4, 4)).apply(value)
    return cv2.cvtColor(cv2.merge((hue, saturation, value)), cv2.COLOR_HSV2BGR)


class Pictures(torch.utils.data.Dataset):  # type: ignore[type-arg] # of torch's older versions too
    """Files in memory, decoded and prepared."""

    def __init__(self, count: int = 7) -> None:
        random = np.random.default_rng(1)
        images = [
            random.integers(0, 256, (40 + 2 * (i % 2), 50, 3), np.uint8) for i in range(count)
        ]
        self.files = [cv2.imencode(".png", image)[1] for image in images]

    def __len__(self) -> int:
        return len(self.files)

    def image(self, index: int) -> Any:
        return cv2.imdecode(self.files[index], cv2.IMREAD_COLOR)

    def __getitem__(self, index: int) -> Any:
        return self.prepare(self.image(index)), index

    def prepare(self, image: Any) -> Any:
        return prepared(image)


class Jittered(Pictures):
    """With random numbers; every worker draws its own."""

    def prepare(self, image: Any) -> Any:
        return jittered(image)


class Named(Pictures):
    """With samples that are dicts, of arrays that are computed and of one that is not."""

    def __getitem__(self, index: int) -> Any:
        image = self.image(index)
        small = self.prepare(image)
        return {
            "image": small,
            "planes": [small[0], small[1:]],
            "raw": image[:8, :8],
            "name": f"picture {index}",
        }


class Batches(Pictures):
    """Which loads the samples of a batch at once."""

    def __getitems__(self, indices: list[int]) -> list[Any]:
        return [(self.prepare(self.image(index)), -index) for index in indices]


class Tensors(Pictures):
    """With samples of tensors, as most programs have."""

    def __getitem__(self, index: int) -> Any:
        image = cv2.cvtColor(cv2.resize(self.image(index), (32, 24)), cv2.COLOR_BGR2RGB)
        planes = torch.from_numpy(image.transpose(2, 0, 1))
        mean, std = (torch.from_numpy(each).view(-1, 1, 1) for each in (MEAN, STD))
        scaled = planes.contiguous().float().div(255)
        return {
            "bytes": planes,
            "input": (scaled - mean) / std,
            "copy": torch.tensor(image, dtype=torch.float32),
            "label": torch.tensor(index),
        }


class Ordered(Pictures):
    """With samples of other kinds of dicts."""

    def __getitem__(self, index: int) -> Any:
        small = self.prepare(self.image(index))
        return OrderedDict(
            image=small, more=UserDict({"planes": [small[0]], "named": Pair(small[1], index)})
        )


class Pair(NamedTuple):
    """Two values."""

    image: Any
    label: int


class Looked(Pictures):
    """With frames that look at the values of every second picture."""

    def prepare(self, image: Any) -> Any:
        found = prepared(image)
        if image.shape[0] == 42 and float(found.max()) > 1e9:
            raise AssertionError
        return found


class Refused(Pictures):
    """With frames that give arrays to code that takes none but numpy's own, after a random draw."""

    def prepare(self, image: Any) -> Any:
        found = prepared(image) + np.float32(np.random.rand())  # noqa: NPY002
        if image.shape[0] == 42:
            torch.nn.functional.relu(torch.from_numpy(np.zeros(3)), found.ndim > 9)
            memoryview(found)
        return found


class Drawn(Pictures):
    """With OpenCV's own random numbers, and frames that give arrays to code that takes none."""

    def __init__(self, *, seeds: bool = False) -> None:
        super().__init__()
        self.seeds = seeds

    def __getitem__(self, index: int) -> Any:
        opencv: Any = cv2  # its types leave numbers out
        noise = opencv.randn(np.zeros(4, np.float32), 0, 1)
        if self.seeds:
            cv2.setRNGSeed(index)
        few = opencv.randu((0.0, 0.0), 0, 9)
        order = cv2.randShuffle(np.arange(9, dtype=np.int32))
        found = prepared(self.image(index))
        points = np.arange(24, dtype=np.float32).reshape(12, 2)
        how = (cv2.TERM_CRITERIA_MAX_ITER, 1, 0.0)
        labels = opencv.kmeans(points, 3, None, how, 1, cv2.KMEANS_RANDOM_CENTERS)[1]
        if index in {1, 4}:
            memoryview(found)
        return found, noise, few, order, labels


class Backwards(Pictures):
    """With an image that ends with a view of which torch makes no tensor."""

    def __init__(self, place: Any, make: str = "") -> None:
        super().__init__()
        self.place = place
        self.make = make

    def __getitem__(self, index: int) -> Any:
        found = cv2.resize(self.image(index), (32, 24))[self.place]
        name, _, dtype = self.make.partition(" ")
        named = {"dtype": getattr(torch, dtype)} if dtype else {}
        made = getattr(torch, name)(found, **named) if name else found
        return {"label": index, "image": [made]}


class Wrong(Pictures):
    """With an error of the program's own."""

    def prepare(self, image: Any) -> Any:
        found = prepared(image)
        if image.shape[0] == 42:
            msg = "the program's own"
            raise KeyError(msg)
        return found


class Held(Pictures):
    """Images in memory, read where they lie."""

    def __init__(self) -> None:
        super().__init__()
        self.images: list[Any] = [cv2.imdecode(file, cv2.IMREAD_COLOR) for file in self.files]

    def image(self, index: int) -> Any:
        return self.images[index][2:]


class Reused(Pictures):
    """With one buffer for all images, which is written into after each sample."""

    def __init__(self) -> None:
        super().__init__()
        self.buffer = np.zeros((40, 50, 3), np.uint8)

    def __getitem__(self, index: int) -> Any:
        self.buffer[...] = super().image(index)[:40]
        found = self.prepare(self.buffer)
        self.buffer[...] = 0
        return found, index


class Cached(Pictures):
    """With the arrays of all samples kept for the next epoch."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[int, Any] = {}

    def __getitem__(self, index: int) -> Any:
        if index not in self.kept:
            self.kept[index] = self.prepare(self.image(index))
        return self.kept[index], index


class Plane(Pictures):
    """With results that are views of what was decoded."""

    def prepare(self, image: Any) -> Any:
        return planes(np.ascontiguousarray(image[:40, :, 0]))


def planes(image: Any) -> Any:
    """Return an image of one plane."""
    return cv2.merge([image])


class Stream(torch.utils.data.IterableDataset):  # type: ignore[type-arg] # as above
    """Pictures one after the other."""

    def __iter__(self) -> Iterator[Any]:
        pictures = Pictures()
        for index in range(len(pictures)):
            yield pictures[index]


class Changes(torch.utils.data.IterableDataset):  # type: ignore[type-arg] # as above
    """Each picture with the one before it, as of a video; both are computed."""

    def __iter__(self) -> Iterator[Any]:
        random = np.random.default_rng(3)
        before = prepared(np.zeros((600, 600, 3), np.uint8))
        for _ in range(24):
            now = prepared(random.integers(0, 256, (600, 600, 3), np.uint8))
            yield before, now
            before = now


class Shards(torch.utils.data.IterableDataset):  # type: ignore[type-arg] # as above
    """Pictures from the first to the last that are wanted."""

    first, last = 0, 6

    def __iter__(self) -> Iterator[Any]:
        pictures = Pictures()
        for index in range(self.first, self.last):
            yield pictures[index]


def share(worker: int) -> None:
    """Give each of two workers its share of the pictures."""
    info: Any = torch.utils.data.get_worker_info()
    assert type(info.dataset) is Shards
    info.dataset.first, info.dataset.last = 3 * worker, 3 * worker + 3


def collated(samples: list[Any]) -> Any:
    """Return a batch as a program of its own puts it together."""
    return {
        "images": torch.stack([torch.as_tensor(image) for image, _ in samples]),
        "sum": sum(index for _, index in samples),
    }


class Failing(Pictures):
    """With a sample in each batch that cannot be loaded, or put together with the others."""

    def __init__(self, place: str) -> None:
        super().__init__()
        self.place = place

    def __getitem__(self, index: int) -> Any:
        small = self.prepare(cv2.resize(self.image(index), (700, 600)))
        if index % 3 == 2 and self.place == "sample":
            raise KeyError(index)
        return small, np.zeros(index if self.place == "collation" else 1)


REMEMBERED: list[Any] = []


class Remembers(Pictures):
    """Which has its first image in a global name, and then fails once."""

    def __getitem__(self, index: int) -> Any:
        REMEMBERED.append(cv2.resize(self.image(index), (16, 12)))
        if len(REMEMBERED) == 2:
            raise KeyError(index)
        remembered = np.array(REMEMBERED[0]) if len(REMEMBERED) > 2 else None
        return remembered, cv2.flip(REMEMBERED[-1], 1), index
