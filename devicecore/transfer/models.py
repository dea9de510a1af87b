"""How models of pydantic and the distributions of torch are rebuilt."""

from __future__ import annotations

import copy
import weakref
from typing import TYPE_CHECKING, Any

from devicecore.frameworks import class_in
from devicecore.transfer.attributes import attributes_of, set_attributes
from devicecore.transfer.objects import ObjectRule

if TYPE_CHECKING:
    from collections.abc import Sequence

# What a model of pydantic keeps of itself, and changes when a field is set.
_BOOKS = frozenset(
    {"__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__", "__fields_set__"}
)


class PydanticRule(ObjectRule):
    """A model of pydantic: its fields, extras and private attributes; nothing is validated."""

    def build(self, value: Any, shell: Any, children: Sequence[Any]) -> Any:
        """Give it all its attributes, and books of its own."""
        attributes = attributes_of(value)
        own = [
            copy.copy(new) if name in _BOOKS and new is old else new
            for (name, old), new in zip(attributes.items(), children, strict=True)
        ]
        set_attributes(shell, attributes, own)
        return shell


class DistributionRule(ObjectRule):
    """A distribution of torch, or a transform in one, with what it has computed and kept."""

    def build(self, value: Any, shell: Any, children: Sequence[Any]) -> Any:
        """Give it all its attributes, but no inverse that belongs to the original."""
        own = [None if isinstance(each, weakref.ref) else each for each in children]
        return super().build(value, shell, own)


_PYDANTIC = PydanticRule()
_DISTRIBUTION = DistributionRule()
_RULES = {
    ("pydantic.main", "BaseModel"): _PYDANTIC,
    ("pydantic.v1.main", "BaseModel"): _PYDANTIC,
    ("torch.distributions.distribution", "Distribution"): _DISTRIBUTION,
    ("torch.distributions.transforms", "Transform"): _DISTRIBUTION,
    ("torch.distributions.constraints", "Constraint"): _DISTRIBUTION,
}


def model_rule(kind: type) -> ObjectRule | None:
    """Return the rule of models and distributions, if *kind* is a class of them."""
    return next((_RULES[each] for each in _RULES if issubclass(kind, class_in(*each))), None)
