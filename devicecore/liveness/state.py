"""`Liveness`: the answer of a probe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

from attrs import asdict, evolve, field, frozen
from attrs.validators import in_

from devicecore.errors import shorten, without_pip
from devicecore.liveness.validators import is_a
from devicecore.names import canonical_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_REASON_CHARACTERS = 500
_DEEPEST = 8

State = Literal[
    "live",
    "untried",
    "absent",
    "missing",
    "broken",
    "excluded",
    "shadowed",
    "timed_out",
    "version_mismatch",
]
Evidence = Literal["metadata", "opened", "ran"]


def _one_line(value: str) -> str:
    """Return a reason without line breaks and control characters, and not endless.

    It may come from a plug-in, and goes to a terminal.
    """
    if type(value) is not str:
        return value  # for the validator to refuse
    shown = "".join(character if character.isprintable() else " " for character in value)
    return shorten(" ".join(shown.split()), _REASON_CHARACTERS)


def _fix(value: str) -> str:
    return without_pip(_one_line(value)) if type(value) is str else value


def _class(value: str) -> str:
    return canonical_type(value) if type(value) is str else value


@frozen
class PhysicalDevice:
    """A piece of hardware that a probe saw, without opening it here.

    Attributes:
        device_type: The type whose factory saw it.
        index: Its number for that type's runtime.
        physical_id: Its UUID or PCI id; devices of several types on one GPU share it.
        description: One line for a person, such as ``"NVIDIA H200"``.
        device_class: ``"CPU"``, ``"GPU"`` or ``"NPU"``.
        memory_bytes: Its memory in bytes, 0 where unknown.
        numa_node: The NUMA node that it hangs on, or None.
        details: Further facts as text, such as ``{"compute_capability": "9.0"}``.
    """

    device_type: str = field(validator=is_a(str))
    index: int = field(validator=is_a(int))
    physical_id: str | None = field(default=None, validator=is_a(str, or_none=True))
    description: str = field(default="", validator=is_a(str))
    device_class: str = field(default="GPU", converter=_class, validator=is_a(str))
    memory_bytes: int = field(default=0, validator=is_a(int))
    numa_node: int | None = field(default=None, validator=is_a(int, or_none=True))
    details: Mapping[str, str] = field(factory=dict, hash=False)


@frozen
class Liveness:
    """Whether something works, how that is known, and why not.

    Attributes:
        state: ``live``: works. ``untried``: may work, nothing was run. ``absent``: this machine has
            no such hardware. ``missing``: the hardware is there or cannot be told, a package or
            driver is not. ``broken``: all is there and it does not work. ``excluded``: the user
            left it out, or a variable such as ``CUDA_VISIBLE_DEVICES`` hides it. ``shadowed``:
            something else goes first: another factory of its type, or a file of the program that
            has the name of its framework. ``timed_out``: the probe was stopped.
            ``version_mismatch``: the plug-in wants another devicecore or another ONNX Runtime.
        evidence: ``metadata``: files were read. ``opened``: a runtime answered. ``ran``: something
            was computed, and was right.
        reason: Why, in one line.
        detail: All there is to know, such as what a framework said; may have many lines.
        fix: What to do, as a command where there is one.
        frameworks: The same for each framework that was asked about, ``torch`` or ``onnx``.
        seconds: How long it took to find out.
        devices: The hardware that was seen.
    """

    state: State = field(validator=in_(get_args(State)))
    evidence: Evidence = field(default="metadata", validator=in_(get_args(Evidence)))
    reason: str = field(default="", converter=_one_line, validator=is_a(str))
    detail: str = field(default="", validator=is_a(str))
    fix: str = field(default="", converter=_fix, validator=is_a(str))
    frameworks: Mapping[str, Liveness] = field(factory=dict, hash=False)
    seconds: float = field(default=0.0, eq=False)
    devices: tuple[PhysicalDevice, ...] = ()

    @property
    def is_live(self) -> bool:
        """Whether it is known to work because something ran."""
        return self.state == "live" and self.evidence == "ran"

    def of(self, framework: str | None) -> Liveness:
        """Return the liveness for *framework*, or the overall one for None."""
        if framework is None:
            return self
        if framework in self.frameworks:
            return self.frameworks[framework]
        if self.state != "live":
            return self
        return Liveness("absent", reason=f"nothing in it is for {framework}")

    def to_json(self) -> dict[str, Any]:
        """Return plain data that `from_json` reads."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any], *, deepest: int = _DEEPEST) -> Liveness:
        """Return the liveness that `to_json` wrote.

        Args:
            data: What it wrote.
            deepest: How deep answers for frameworks may lie in each other.

        Raises:
            TypeError: *data* has other keys, or a value is of another type.
            ValueError: A value is none that it can have.
        """
        if not deepest:
            msg = f"its frameworks lie more than {_DEEPEST} deep in each other"
            raise ValueError(msg)
        told = dict(data)
        if not isinstance(told.get("seconds", 0.0), (int, float)):
            msg = "its seconds are no number"
            raise TypeError(msg)
        return cls(
            **{
                **told,
                "frameworks": {
                    name: cls.from_json(part, deepest=deepest - 1)
                    for name, part in dict(told.get("frameworks", {})).items()
                },
                "devices": tuple(_device(device) for device in told.get("devices", ())),
            }
        )


def _device(data: Mapping[str, Any]) -> PhysicalDevice:
    device = PhysicalDevice(**data)
    if not all(isinstance(text, str) for item in dict(device.details).items() for text in item):
        msg = "the details of its device are no texts"
        raise TypeError(msg)
    return device


def seen_by(answers: Iterable[Liveness]) -> tuple[PhysicalDevice, ...]:
    """Return the hardware that several probes saw, each piece with the details of all of them."""
    seen: dict[int, PhysicalDevice] = {}
    for device in (device for answer in answers for device in answer.devices):
        known = seen.setdefault(device.index, device)
        details: Mapping[str, str] = {**known.details, **device.details}
        seen[device.index] = evolve(known, details=details)
    return tuple(seen.values())
