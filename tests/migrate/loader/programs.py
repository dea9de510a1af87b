"""Datasets, samplers and collations as people write them, for tests of `DeviceLoader`."""

from __future__ import annotations

import random
from collections import namedtuple
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import cv2
import numpy as np
import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

Example = namedtuple("Example", ["image", "name", "box"])  # noqa: PYI024 - as programs have them


class Typed(NamedTuple):
    """The same with types."""

    image: Any
    label: int


@dataclass
class Record:
    """A sample that torch's own collation does not know."""

    image: Any
    label: int

    def pin_memory(self) -> Record:
        """Return it as it is."""
        return self


def write_photos(folder: Path, count: int = 7) -> list[str]:
    """Write JPEG files, and return their names."""
    chance = np.random.default_rng(2)
    names = []
    for index in range(count):
        small = chance.integers(0, 256, (6, 5 + index % 2, 3), np.uint8)
        image = cv2.resize(small, (40, 30), interpolation=cv2.INTER_NEAREST)
        names.append(str(folder / f"photo {index}.jpg"))
        cv2.imwrite(names[-1], image)
    return names


class Photos(torch.utils.data.Dataset):  # type: ignore[type-arg] # of torch's older versions too
    """JPEG files with a label in their name; a kind says what the program does with each."""

    def __init__(self, names: list[str], kind: str) -> None:
        self.names = names
        self.kind = kind
        self.chance = np.random.default_rng(5)
        self.own = random.Random(6)

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, index: int) -> Any:
        image: Any = cv2.imread(self.names[index])
        return SAMPLES[self.kind](self, cv2.resize(image, (32, 24)), index)


def _python(_: Photos, image: Any, index: int) -> Any:
    if random.random() < 0.5:
        image = cv2.flip(image, 1)
    top, left = random.randint(0, 4), random.randint(0, 4)
    return image[top : top + 16, left : left + 16], random.choice("abc"), index


def _numpy(_: Photos, image: Any, index: int) -> Any:
    angle = np.random.uniform(-20, 20)  # noqa: NPY002 - programs use it
    turn = cv2.getRotationMatrix2D((16, 12), angle, 1.0)
    image = cv2.warpAffine(image, turn, (32, 24))
    noise = np.random.normal(0, 4, image.shape).astype(np.float32)  # noqa: NPY002
    return np.clip(image + noise, 0, 255).astype(np.uint8), np.random.randint(9), index  # noqa: NPY002


def _torch(_: Photos, image: Any, index: int) -> Any:
    tensor = torch.from_numpy(image).permute(2, 0, 1).float() / 255
    if torch.rand(1).item() < 0.5:
        tensor = tensor.flip(-1)
    return tensor + torch.randn(3, 1, 1) * 0.1, torch.randint(9, (2,)), index


def _own_generators(own: Photos, image: Any, index: int) -> Any:
    shift = own.chance.integers(-3, 3, 2)
    moved = np.roll(image, tuple(shift), (0, 1))
    return cv2.GaussianBlur(moved, (3, 3), own.own.uniform(0.5, 2)), index


def _opencv(_: Photos, image: Any, index: int) -> Any:
    noise: Any = np.zeros(image.shape, np.int16)
    opencv: Any = cv2  # its types leave numbers out
    opencv.randn(noise, 0, 9)
    return cv2.add(image, noise, dtype=cv2.CV_8U), index


def _dict(own: Photos, image: Any, index: int) -> Any:
    grey = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
    return {
        "image": image,
        "grey": grey,
        "mask": grey > 127,
        "name": Path(own.names[index]).name,
        "boxes": [np.array([1.0, 2.0, 3.0, 4.0 + index]), (index, 0.5)],
        "meta": {"bytes": b"x" * index, "size": torch.tensor(image.shape), "flag": index % 2 == 0},
        "empty": [],
    }


def _namedtuple(own: Photos, image: Any, index: int) -> Any:
    return Example(image, own.names[index], np.float32(index)), Typed(image[:, ::2], index)


def _scalar_like(_: Photos, image: Any, index: int) -> Any:
    return image.mean(), int(image[0, 0, 0]), float(image.std()), image.max(), np.int16(index)


def _grey_and_float(_: Photos, image: Any, index: int) -> Any:
    grey = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
    edges = cv2.Canny(grey, 50, 100)
    return grey[None], edges, np.float64(index), (grey.astype(np.float64) - 3) / 7


def _pillow(_: Photos, image: Any, index: int) -> Any:
    from PIL import Image

    turned = Image.fromarray(cv2.cvtColor(image, cv2.COLOR_BGR2RGB)).rotate(90)
    return np.asarray(turned).copy(), index


def _written_into(_: Photos, image: Any, index: int) -> Any:
    canvas = np.full((40, 40, 3), 114, np.uint8)
    canvas[2:26, 4:36] = image
    image[:4] = 0
    cv2.rectangle(image, (1, 1), (9, 9), (0, 0, 255), -1)
    return canvas, image, index


def _mosaic(own: Photos, image: Any, index: int) -> Any:
    others = [index, *random.choices(range(len(own)), k=3)]
    read: Any = cv2.imread
    images = [cv2.resize(read(own.names[other]), (16, 12)) for other in others]
    rows = [np.hstack(images[:2]), np.hstack(images[2:])]
    return np.vstack(rows).transpose(2, 0, 1), np.array(others), image


def _backwards(_: Photos, image: Any, index: int) -> Any:
    return np.ascontiguousarray(image[:, :, ::-1].transpose(2, 0, 1)), index


def _same_twice(_: Photos, image: Any, index: int) -> Any:
    return image, image, [image, image[:3]], index


def _object(_: Photos, image: Any, index: int) -> Any:
    return Record(image, index)


def _only_an_image(_: Photos, image: Any, index: int) -> Any:
    del index
    return image


def _none(_: Photos, image: Any, index: int) -> Any:
    return None if index % 3 == 1 else (image, index)


SAMPLES: dict[str, Any] = {
    name.strip("_"): function
    for name, function in list(globals().items())
    if name.startswith("_") and getattr(function, "__module__", "") == __name__
}
OBJECTS = ("object", "none")
"""The kinds of samples that need a collation of the program's own."""


class Stream(torch.utils.data.IterableDataset):  # type: ignore[type-arg] # as above
    """Photos one after the other; workers share them."""

    def __init__(self, names: list[str], kind: str) -> None:
        self.photos = Photos(names, kind)

    def __iter__(self) -> Iterator[Any]:
        info = torch.utils.data.get_worker_info()
        start, step = (0, 1) if info is None else (info.id, info.num_workers)
        for index in range(start, len(self.photos), step):
            yield self.photos[index]


class Backwards(torch.utils.data.Sampler):  # type: ignore[type-arg] # as above
    """From the last one to the first one, some twice."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __iter__(self) -> Iterator[int]:
        yield from reversed(range(self.count))
        yield from (0, 2)

    def __len__(self) -> int:
        return self.count + 2


def of_records(samples: list[Record]) -> Record:
    images = torch.stack([torch.as_tensor(each.image) for each in samples])
    return Record(images, sum(each.label for each in samples))


def without_none(samples: list[Any]) -> Any:
    return torch.utils.data.default_collate([each for each in samples if each is not None])


def padded(samples: list[Any]) -> Any:
    images = [torch.as_tensor(each[0]).permute(2, 0, 1) for each in samples]
    whole = torch.zeros(len(images), 3, 40, 40, dtype=torch.uint8)
    for place, image in enumerate(images):
        whole[place, :, : image.shape[1], : image.shape[2]] = image
    return whole, [each[-1] for each in samples]


def as_lists(samples: list[Any]) -> Any:
    return tuple(zip(*samples, strict=True))


def seed_all(worker: int) -> None:
    """Seed what workers draw from."""
    seed = torch.initial_seed() % 2**32 + worker
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - programs use it
    cv2.setRNGSeed(7 + worker)
