"""Objects that move themselves with a ``to``: all of what they hold is seen, none of it changed."""

from __future__ import annotations

import copy
import logging
import threading
import weakref
from types import SimpleNamespace
from typing import Any

import pytest

from devicecore.errors import TransferError
from devicecore.transfer import tensors_to_device

torch = pytest.importorskip("torch")


class Batch:
    """Moves what it holds in place, as many do."""

    def __init__(self, **fields: Any) -> None:
        self.fields = fields
        self.steps = [["none"]]
        self.lock = threading.Lock()
        self.log = logging.getLogger("batch")

    def to(self, device: Any) -> Batch:
        for name, value in self.fields.items():
            self.fields[name] = value.to(device)
        self.steps[0][0] = str(device)
        return self


class Holder:
    """Knows nothing of devices."""

    def __init__(self, tensor: Any) -> None:
        self.deep = [tensor]


class Nested(Batch):
    """Reaches into another object of its own."""

    def __init__(self) -> None:
        super().__init__(ids=torch.ones(2))
        self.holder = Holder(torch.ones(2))
        self.inner = Batch(mask=torch.ones(2))

    def to(self, device: Any) -> Nested:
        super().to(device)
        self.holder.deep[0] = self.holder.deep[0].to(device)
        self.inner.to(device)
        return self


def test_containers_inside_of_what_was_given_stay_as_they_were() -> None:
    batch = Batch(ids=torch.ones(2), mask=torch.ones(2))
    moved = tensors_to_device({"b": batch}, "meta")["b"]
    assert {each.device.type for each in moved.fields.values()} == {"meta"}
    assert {each.device.type for each in batch.fields.values()} == {"cpu"}
    assert moved.steps == [["meta"]]
    assert batch.steps == [["none"]]
    assert moved.lock is batch.lock
    assert moved.log is batch.log


def test_objects_inside_of_what_was_given_stay_as_they_were() -> None:
    given = Nested()
    moved = tensors_to_device([given], "meta")[0]
    for each, device in ((given, "cpu"), (moved, "meta")):
        assert each.holder.deep[0].device.type == device
        assert each.inner.fields["mask"].device.type == device
    assert tensors_to_device([moved], "meta")[0] is moved


class Pipeline:
    """Looks like a pipeline of diffusers: its ``to`` moves its modules."""

    def __init__(self, net: Any) -> None:
        self.parts = {"net": net}

    def to(self, device: Any) -> Pipeline:
        for part in self.parts.values():
            part.to(device)
        return self


def test_an_object_that_holds_a_module_elsewhere_is_refused() -> None:
    net = torch.nn.Linear(2, 2)
    with pytest.raises(TransferError) as caught:
        tensors_to_device({"pipe": Pipeline(net)}, "meta")
    assert caught.value.path == "data['pipe'].parts['net']"
    assert "it is a module (Linear)" in caught.value.reason
    assert net.weight.device.type == "cpu"
    pipe = Pipeline(net)
    assert tensors_to_device([pipe], "cpu")[0] is pipe
    with_activation = Pipeline(torch.nn.ReLU())  # there is nothing of it to be moved
    assert isinstance(tensors_to_device(with_activation, "meta"), Pipeline)


class Parts:
    """Has one tensor in sight, and others in a list."""

    def __init__(self, mask: Any, parts: list[Any]) -> None:
        self.mask = mask
        self.parts = parts

    def to(self, device: Any) -> Parts:
        return Parts(
            torch.empty_like(self.mask, device=device),
            [torch.empty_like(each, device=device) for each in self.parts],
        )


def test_tensors_that_are_not_in_sight_are_moved_too() -> None:
    given = Parts(torch.ones(1), [torch.ones(1), torch.ones(1, device="meta")])
    moved = tensors_to_device([given], "cpu")[0]
    assert [each.device.type for each in moved.parts] == ["cpu", "cpu"]
    assert tensors_to_device([moved], "cpu")[0] is moved


class Late:
    """Notes its device once it has one; its ``to`` takes anything."""

    def __init__(self, tensor: Any, device: Any = None) -> None:
        self.tensor = tensor
        if device is not None:
            self.device = device

    def to(self, *args: Any) -> Late:
        return Late(self.tensor.to(*args), args[0])


@pytest.mark.parametrize("first", [None, "cpu"])
def test_whether_it_has_a_device_is_asked_of_each_object(first: str | None) -> None:
    kind = type("Late", (Late,), {})  # a class that nobody has asked about yet
    tensors_to_device([kind(torch.ones(1), first)], "meta")
    without, with_one = kind(torch.ones(1)), kind(torch.ones(1), "cpu")
    moved = tensors_to_device([without, with_one], "meta")
    assert moved[0] is without
    assert moved[1].tensor.device.type == "meta"


class Store(dict[str, Any]):
    """Part of a graph, which it knows."""

    parent: Any = None


class Graph:
    """Looks like PyG's Data: it says itself how it is copied, as its parts know it."""

    def __init__(self, x: Any) -> None:
        self.store = Store(x=x)
        self.store.parent = weakref.ref(self)

    def __copy__(self) -> Graph:
        made = Graph.__new__(Graph)
        made.store = copy.copy(self.store)
        made.store.parent = weakref.ref(made)
        return made

    def to(self, device: Any) -> Graph:
        self.store["x"] = self.store["x"].to(device)
        return self


def test_a_class_that_says_how_it_is_copied_is_copied_so() -> None:
    given = Graph(torch.ones(1))
    moved = tensors_to_device([given], "meta")[0]
    assert moved.store.parent() is moved
    assert given.store.parent() is given
    assert moved.store["x"].device.type == "meta"
    assert given.store["x"].device.type == "cpu"


class Single:
    """Only one of it can be."""

    def __init__(self) -> None:
        self.fields = {"x": torch.ones(1)}

    def __copy__(self) -> Single:
        return self

    def to(self, device: Any) -> Single:
        raise AssertionError(device)


def test_what_cannot_be_copied_is_refused() -> None:
    with pytest.raises(TransferError, match=r"data\[0\].* copy"):
        tensors_to_device([Single()], "meta")


class Cyclic:
    """Holds itself, a module of Python, its class, and a mapping that cannot be read."""

    def __init__(self) -> None:
        self.own = [self]
        self.tensor = torch.ones(1)
        self.others = (torch, Cyclic, len, SimpleNamespace(me=self), weakref.proxy(self))

    def to(self, device: Any) -> None:
        self.tensor = self.tensor.to(device)


def test_an_object_that_holds_itself() -> None:
    given = Cyclic()
    moved = tensors_to_device([given], "meta")[0]
    assert given.tensor.device.type == "cpu"
    assert moved.tensor.device.type == "meta"
    assert moved.own[0] is moved
    assert given.own[0] is given
