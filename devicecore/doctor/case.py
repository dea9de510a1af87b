"""What the doctor looks at: the machine's candidates, and sessions as a program opens them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import field, frozen

from devicecore.liveness import hardware
from devicecore.names import PROVIDER_TYPES
from devicecore.ort import CPU_PROVIDER, ort_package, plugin_library, provider_named
from devicecore.ort.package import is_built_in

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from devicecore.device_factory import Candidate


@frozen
class Trial:
    """What came of opening a session, in a child process, as a program does without us.

    Attributes:
        nodes: The model's nodes on each provider; empty where ONNX Runtime does not tell (< 1.24).
        listed: Whether the session names the provider among its own, which proves nothing.
        devices: How many EpDevices the provider offers.
        error: What the provider raised; a program with the usual settings gets the CPU then.
        log: What ONNX Runtime and the drivers said.
        operators: The operators of the model.
        open_inputs: The inputs whose shape is open, such as ``"x [N, 3, H, W]"``.
        timed_out: Whether opening it took too long.
    """

    nodes: Mapping[str, int] = field(factory=dict, hash=False)
    listed: bool = False
    devices: int = 0
    error: str = ""
    log: tuple[str, ...] = ()
    operators: frozenset[str] = frozenset()
    open_inputs: tuple[str, ...] = ()
    timed_out: bool = False

    @property
    def total(self) -> int:
        """How many nodes the model has."""
        return sum(self.nodes.values())


@frozen
class Session:
    """A session as a program opens it, by ``InferenceSession`` and the name of a provider.

    Attributes:
        provider: The provider's name, as the program spells it.
        options: The provider's options.
        model: The model's file; None for a model of two nodes.
        library: The file of the plug-in that brings the provider, for one that we do not know.
        trial: What came of opening it; None if nobody tried.
    """

    provider: str
    options: Mapping[str, str] = field(factory=dict, hash=False)
    model: Path | None = None
    library: str | None = None
    trial: Trial | None = None

    @property
    def is_cpu(self) -> bool:
        """Whether the CPU is what was asked for."""
        return self.provider == CPU_PROVIDER

    @property
    def is_plugin(self) -> bool:
        """Whether only a plug-in brings the provider here."""
        known, package = provider_named(self.provider), ort_package()
        if self.library is not None:
            return True
        if package is not None and is_built_in(known, package):
            return False
        return known.plugin is not None and plugin_library(known.plugin) is not None

    @property
    def title(self) -> str:
        """The model in a few words."""
        return self.model.name if self.model else "a model of two nodes"


@frozen
class Case:
    """Everything that a diagnosis may ask about, besides the files of this machine.

    Attributes:
        candidates: What `FactoryRegistry.explain` says of this machine.
        sessions: The sessions that somebody wonders about.
    """

    candidates: tuple[Candidate, ...] = ()
    sessions: tuple[Session, ...] = ()

    @property
    def absent_types(self) -> frozenset[str]:
        """The device types that this machine has no hardware for."""
        states: dict[str, set[str]] = {}
        for candidate in self.candidates:
            states.setdefault(candidate.registration.device_type, set()).add(
                candidate.liveness.state
            )
        absent = {name for name, seen in states.items() if seen == {"absent"}}
        # One that was excluded was not looked at, and of some no factory is installed.
        not_seen = {*PROVIDER_TYPES.values()} - {
            name for name, seen in states.items() if seen != {"excluded"}
        }
        return frozenset(absent | {name for name in not_seen if hardware.why_absent(name)})
