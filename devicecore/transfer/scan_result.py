"""What a walk through a structure has found, and how one writes the way to a part of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import field, frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from devicecore.frameworks.base.leaf import LeafKind
    from devicecore.transfer.containers import Rule

_LONGEST_PATH = 40  # in steps; of a longer one, the middle is left out


@frozen
class ScanResult:
    """What a walk has found. All keys are ids of objects that are kept alive here.

    Attributes:
        root: The structure.
        containers: Each container once: itself, its rule and what it holds.
        leaves: By their kind, each leaf once; of the walk through all data, those elsewhere.
        kept: Containers whose keys stay as they are, and objects of unknown classes: each once,
            with what in it may be left behind.
        name: How a path calls the root.
    """

    root: Any
    containers: dict[int, tuple[Any, Rule, Sequence[Any]]] = field(factory=dict)
    leaves: dict[LeafKind, dict[int, Any]] = field(factory=dict)
    kept: dict[int, tuple[Any, Sequence[Any]]] = field(factory=dict)
    name: str = "data"

    def path_to(self, value: Any) -> str:
        """Return how one writes the way from the root, to *value*."""
        came: dict[int, tuple[Any, int] | None] = {id(self.root): None}
        waiting = [self.root]
        for container in waiting:
            known = self.containers.get(id(container))
            for position, child in enumerate(known[2] if known else ()):
                key = id(child)
                if key not in came and (key in self.containers or child is value):
                    came[key] = (container, position)
                    waiting.append(child)
            if id(value) in came:
                break
        steps: list[str] = []
        way = came.get(id(value))
        while way is not None:
            container, position = way
            steps.append(self.containers[id(container)][1].step(container, position))
            way = came[id(container)]
        if len(steps) > _LONGEST_PATH:
            steps[_LONGEST_PATH // 2 : -_LONGEST_PATH // 2] = ["…"]
        return self.name + "".join(reversed(steps))
