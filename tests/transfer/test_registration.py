"""Containers that others made known: to devicecore, to torch's pytree, or to optree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import optree
import pytest

from devicecore.errors import RegistrationError, TransferError
from devicecore.transfer import (
    register_container,
    tensors_to_device,
    unregister_container,
)

torch = pytest.importorskip("torch")
pytree = pytest.importorskip("torch.utils._pytree")

if TYPE_CHECKING:
    from collections.abc import Iterator


class Graph:
    """A class that nobody can know."""

    def __init__(self, nodes: Any, name: str) -> None:
        self.nodes = nodes
        self.name = name


class Subgraph(Graph):
    """One of its subclasses."""


@pytest.fixture(autouse=True)
def _leave_nothing_behind() -> Iterator[None]:
    yield
    for kind in (Graph, Subgraph):
        try:
            unregister_container(kind)
        except RegistrationError:
            continue


def flatten(graph: Graph) -> tuple[list[Any], str]:
    return [graph.nodes], graph.name


def unflatten(children: Any, context: str) -> Graph:
    return Graph(children[0], context + "'")


def graph(kind: type[Graph] = Graph) -> Graph:
    return kind([torch.ones(2)], "g")


def test_an_unknown_object_is_left_alone() -> None:
    value = [graph(), torch.ones(1)]
    moved = tensors_to_device(value, "meta")
    assert moved[0] is value[0]
    assert moved[1].device.type == "meta"


def test_two_functions_say_how() -> None:
    register_container(Graph, flatten, unflatten)
    value = graph()
    moved = tensors_to_device({"g": value}, "meta")["g"]
    assert moved.nodes[0].device.type == "meta"
    assert moved.name == "g'"
    assert value.nodes[0].device.type == "cpu"
    assert tensors_to_device(value, "cpu") is value


def test_without_functions_all_attributes_are_looked_into() -> None:
    register_container(Graph)
    for kind in (Graph, Subgraph):
        moved = tensors_to_device(graph(kind), "meta")
        assert type(moved) is kind
        assert moved.nodes[0].device.type == "meta"
        assert moved.name == "g"


def test_a_subclass_follows_its_base_until_it_has_its_own() -> None:
    register_container(Graph, flatten, unflatten)
    assert type(tensors_to_device(graph(Subgraph), "meta")) is Graph
    register_container(Subgraph)
    assert type(tensors_to_device(graph(Subgraph), "meta")) is Subgraph


def test_a_registration_can_be_undone() -> None:
    register_container(Graph)
    value = graph()
    assert tensors_to_device(value, "meta") is not value
    unregister_container(Graph)
    assert tensors_to_device(value, "meta") is value
    with pytest.raises(RegistrationError):
        unregister_container(Graph)


def test_what_cannot_be_registered() -> None:
    with pytest.raises(RegistrationError, match="no class"):
        register_container("Graph")  # type: ignore[arg-type]
    with pytest.raises(RegistrationError, match="builtin"):
        register_container(dict)
    with pytest.raises(RegistrationError, match="both functions or none"):
        register_container(Graph, flatten)


def test_a_handler_that_fails_is_named() -> None:
    register_container(Graph, flatten, lambda _children, _context: 1 / 0)
    with pytest.raises(TransferError, match=r"data\[0\] cannot be moved: a Graph .*ZeroDivision"):
        tensors_to_device([graph()], "meta")


def test_one_that_holds_itself_is_made_if_something_can_be_filled_later() -> None:
    register_container(Graph, flatten, unflatten)
    value = graph()
    value.nodes.append(value)
    moved = tensors_to_device(value, "meta")
    assert moved.nodes[1] is moved
    direct = graph()
    direct.nodes = (direct, torch.ones(1))
    with pytest.raises(TransferError, match=r"^data cannot be moved: it holds itself"):
        tensors_to_device(direct, "meta")


def test_what_torch_knows_is_honoured() -> None:
    class Known(Graph):
        pass

    value = Known([torch.ones(2)], "g")
    assert tensors_to_device(value, "meta") is value
    pytree.register_pytree_node(
        Known, lambda known: ([known.nodes], known.name), lambda nodes, name: Known(nodes[0], name)
    )
    try:
        moved = tensors_to_device(value, "meta")
    finally:
        pytree._deregister_pytree_node(Known)
    assert moved.nodes[0].device.type == "meta"
    assert moved.name == "g"


def test_what_optree_knows_is_honoured() -> None:
    class Known(Graph):
        pass

    value = Known([torch.ones(2)], "g")
    assert tensors_to_device(value, "meta") is value
    register: Any = optree.register_pytree_node  # its types want a Collection
    register(
        Known,
        lambda known: ([known.nodes], known.name),
        lambda name, nodes: Known(nodes[0], name),
        namespace="devicecore-tests",
    )
    try:
        moved = tensors_to_device(value, "meta")
    finally:
        optree.unregister_pytree_node(Known, namespace="devicecore-tests")
    assert moved.nodes[0].device.type == "meta"
    assert moved.name == "g"
