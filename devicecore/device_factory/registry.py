"""`FactoryRegistry`: all factories, the live one that goes first, and why the others do not."""

from __future__ import annotations

import threading
from importlib import import_module
from typing import TYPE_CHECKING

from devicecore.debug_log import debug
from devicecore.device_factory import candidates, device_creation, preference, type_lookup
from devicecore.device_factory.factory import DeviceFactory
from devicecore.device_factory.probe_results import ProbeResults
from devicecore.device_factory.prober import Prober, load, run_concurrently
from devicecore.device_factory.registration import (
    UNREGISTERED_PRIORITY,
    Registration,
    default_priority,
)
from devicecore.errors import NotLiveError, RegistrationError
from devicecore.fork import rearm_after_fork
from devicecore.ledger import default_ledger
from devicecore.liveness import Liveness
from devicecore.liveness.probe_result import ProbeResult, failure, pass_on_interrupt
from devicecore.names import meant_framework

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from devicecore.device import Device
    from devicecore.device_factory.candidates import Candidate
    from devicecore.device_factory.device_options import DeviceOptions


class FactoryRegistry:
    """Factories by device type; any number of them may share one, and the first live one serves it.

    The order is the same on every machine: the user's (``DEVICECORE_PREFER``), then the higher
    priority, then type, distribution and entry name. No factory is ever called with a lock held.

    Args:
        source: ``"module:function"`` that returns further registrations when first needed.
        prober: How liveness is found out; None for the usual way.
    """

    def __init__(self, source: str | None = None, *, prober: Prober | None = None) -> None:
        self._source = source
        self._prober = prober or Prober()
        self._registrations: dict[tuple[str, str, str], Registration] = {}
        self._factories: dict[Registration, DeviceFactory] = {}
        self._results = ProbeResults()
        # The live pick for each type and framework; read without the lock.
        self._picks: dict[tuple[str, str | None], DeviceFactory] = {}
        self._lock = threading.RLock()
        rearm_after_fork(self)

    # --- who is there -------------------------------------------------------------------------

    def register(self, registration: Registration, *, override: bool = False) -> Registration:
        """Add a factory; the same one again changes nothing.

        Args:
            registration: The factory.
            override: Replace one of the same type, distribution and entry name.

        Raises:
            RegistrationError: Such a one is there already, or its type differs from a known one
                only by case.
        """
        self._load_source()
        with self._lock:
            known = self._registrations.get(registration.identity)
            if known is not None and known == registration:
                return known
            if known is not None and not override:
                raise RegistrationError(
                    registration.device_type,
                    f"{registration.origin} is registered already, as {known.factory!r}",
                    "pass override=True to replace it",
                )
            for other in self._registrations.values():
                if other.device_type.upper() == registration.device_type.upper() and (
                    other.device_type != registration.device_type
                ):
                    raise RegistrationError(
                        registration.device_type,
                        f"it differs from {other.device_type!r} only by case",
                        f"use {other.device_type!r}",
                    )
            if known is not None:
                self._forget(known)
            self._registrations[registration.identity] = registration
            self._picks = {}
        return registration

    def register_class(
        self,
        device_type: str,
        factory: type[DeviceFactory],
        priority: int | None = None,
        *,
        override: bool = False,
    ) -> Registration:
        """Register a factory class of this program.

        Args:
            device_type: The type that it makes.
            factory: The class; its constructor takes no arguments.
            priority: None for the factory's own, or TensorFlow's default of the type.
            override: See `register`.

        Raises:
            RegistrationError: See `register`.
        """
        if not _is_factory_class(factory):
            raise RegistrationError(device_type, f"{factory!r} is not a subclass of DeviceFactory")
        if priority is None:
            priority = factory.priority
        return self.register(
            Registration(
                device_type,
                factory,
                default_priority(device_type) if priority is None else priority,
                factory.__module__,
                factory.__qualname__,
            ),
            override=override,
        )

    def unregister(self, registration: Registration) -> None:
        """Take a factory out of new picks; its devices keep their kernels until they are closed.

        Raises:
            RegistrationError: It is not registered.
        """
        with self._lock:
            if self._registrations.get(registration.identity) != registration:
                raise RegistrationError(registration.device_type, "it is not registered")
            del self._registrations[registration.identity]
            self._forget(registration)

    def factories(self, device_type: str | None = None) -> tuple[Registration, ...]:
        """Return the registrations, of one type or class or all, in their order."""
        self._load_source()
        wanted = None if device_type is None else type_lookup.types_meant(self, device_type)
        with self._lock:
            found = [
                registration
                for registration in self._registrations.values()
                if wanted is None or registration.device_type in wanted
            ]
        # Plug-ins that only a child can ask for their priority are asked all at once.
        self.probe([each for each in found if each.priority is None])
        wish = preference.wishes(self)
        priority = self.priority_of
        return tuple(sorted(found, key=lambda e: (wish(e), -priority(e), e.identity)))

    @property
    def known_types(self) -> frozenset[str]:
        """All registered types, without asking a plug-in for its priority."""
        self._load_source()
        with self._lock:
            return frozenset(each.device_type for each in self._registrations.values())

    @property
    def device_types(self) -> tuple[str, ...]:
        """All registered types, in the order of their first factory."""
        return tuple(dict.fromkeys(entry.device_type for entry in self.factories()))

    def device_priority(self, device_type: str) -> int:
        """Return the highest priority of a type, or of the types of a class; -1 if it has none."""
        return max(
            map(self.priority_of, type_lookup.factories_of(self, device_type)),
            default=UNREGISTERED_PRIORITY,
        )

    def priority_of(self, registration: Registration) -> int:
        """Return a factory's priority; a plug-in that does not state it is asked in a child."""
        priority = registration.priority
        if priority is None:
            priority = self._report(registration, None, deep=True).priority
        return default_priority(registration.device_type) if priority is None else priority

    # --- who is live --------------------------------------------------------------------------
    def get_factory(self, device_type: str, framework: str | None = None) -> DeviceFactory:
        """Return the live factory of a type that goes first.

        Args:
            device_type: The type, in any case, or the name of its provider.
            framework: Live for ``"torch"`` or ``"onnx"``; None for anything at all.

        Raises:
            UnknownDeviceError: Nobody registered the type.
            NotLiveError: No factory of the type is live; says why the first one is not.
            ValueError: *framework* is misspelt.
        """
        try:
            return self._picks[device_type, framework]
        except (KeyError, TypeError):  # TypeError: what cannot be a key is no name either
            device_type = type_lookup.registered_type(self, device_type)
            return self._pick(device_type, meant_framework(framework))

    def _pick(self, device_type: str, framework: str | None) -> DeviceFactory:
        picks = self._picks  # what changes meanwhile puts another table in its place
        # One that waits for a class of devices serves managers that are made as a whole.
        registrations = [e for e in self.factories(device_type) if e.after_class is None]
        if not registrations:
            raise type_lookup.unknown(self, device_type)
        for registration in registrations:
            if self.liveness_of(registration, framework).is_live:
                try:
                    factory = picks[device_type, framework] = self.build(registration)
                except BaseException as error:  # noqa: BLE001 - its import may differ here
                    pass_on_interrupt(error)
                    self.downgrade(registration, failure(error))
                else:
                    debug("%s for %s: takes %s", device_type, framework, registration.origin)
                    return factory
        reasons = [self.liveness_of(entry, framework) for entry in registrations]
        first = next((why for why in reasons if why.state != "absent"), reasons[0])
        what = f"{device_type} for {framework}" if framework else device_type
        raise NotLiveError(what, first.state, first.reason, first.fix)

    def liveness_of(
        self, registration: Registration, framework: str | None = None, *, deep: bool = True
    ) -> Liveness:
        """Return whether one factory is live; with *deep*, probe it if nothing is known yet."""
        asked = meant_framework(framework)
        return self._report(registration, asked, deep=deep).liveness.of(asked)

    def explain(self, what: str | None = None, *, deep: bool = False) -> list[Candidate]:
        """Return every candidate in order, with the reason why it is or is not taken.

        Args:
            what: A device type or class, in any case, or a provider; None for all.
            deep: Probe what was not tried yet, all at once; otherwise only look, and use what is
                known from before.

        Raises:
            UnknownDeviceError: Nobody registered the type; says what is near.
        """
        return candidates.explain(self, what, deep=deep)

    def probe(self, registrations: Sequence[Registration], frameworks: Sequence[str] = ()) -> None:
        """Probe *registrations* all at once, for *frameworks* or as such, if not done before."""
        questions = [
            (registration, framework)
            for registration in registrations
            for framework in (frameworks or (None,))
        ]
        run_concurrently(self.liveness_of, questions)

    def refresh(self) -> None:
        """Forget all evidence, so that the next question probes anew."""
        self._results.forget()
        self._picks = {}
        self._prober.cache.forget()

    def doubt(self, registration: Registration, error: NotLiveError) -> None:
        """Forget the evidence about one factory, since a device of it says that it is not live.

        The next question probes it anew; the ledger gets an entry. A model that the device cannot
        run may be all that is wrong, so the factory is not called broken for it.
        """
        self._results.forget(registration)
        self._picks = {}
        self._prober.forget(registration)
        default_ledger().record(
            f"use {registration.origin}", registration.device_type, "a new probe", str(error)
        )

    def downgrade(self, registration: Registration, liveness: Liveness) -> None:
        """Call a factory broken, since its first real use failed although its probe did not.

        Devices that were made before stay as they are; the ledger gets an entry.
        """
        report = ProbeResult(liveness, self.priority_of(registration))
        self._results.replace(registration, report)
        self._picks = {}
        self._prober.contradict(registration, report)
        default_ledger().record(
            f"use {registration.origin}",
            registration.device_type,
            "the next live factory",
            liveness.reason,
        )

    # --- making devices -----------------------------------------------------------------------

    def add_devices(self, options: DeviceOptions, name_prefix: str) -> list[Device]:
        """Make the devices of the first live factory of every type, the CPU's first.

        A factory that fails costs only itself; the next live one of its type takes over.

        Args:
            options: Which devices.
            name_prefix: What their names start with.

        Raises:
            NotLiveError: No CPU device could be made.
        """
        return device_creation.add_devices(self, options, name_prefix)

    def new_device(self, device_type: str, options: DeviceOptions, name_prefix: str) -> Device:
        """Make one device of a type.

        Raises:
            UnknownDeviceError: Nobody registered the type.
            NotLiveError: No factory of the type is live, or none made a device.
        """
        return device_creation.new_device(self, device_type, options, name_prefix)

    def build(self, registration: Registration) -> DeviceFactory:
        """Return the factory of *registration*, built once; whatever its import raises goes on."""
        with self._lock:
            factory = self._factories.get(registration)
        if factory is None:
            made = load(registration)
            with self._lock:
                factory = self._factories.setdefault(registration, made)
        return factory

    def after_fork(self) -> None:
        """Take a lock of its own in a forked child."""
        self._lock = threading.RLock()

    # --- inside -------------------------------------------------------------------------------

    def _report(
        self, registration: Registration, framework: str | None, *, deep: bool
    ) -> ProbeResult:
        """Return what is known; whoever asks for a probe first makes it, the others wait."""
        if not deep and (known := self._results.known(registration, framework)):
            return known

        def probe() -> ProbeResult:
            if preference.is_excluded(registration.device_type, self.known_types):
                return ProbeResult(Liveness("excluded", reason="DEVICECORE_EXCLUDE leaves it out"))
            return self._prober.probe(
                registration, framework, lambda: self.build(registration), deep=deep
            )

        return self._results.get(registration, framework, probe) if deep else probe()

    def _forget(self, registration: Registration) -> None:
        self._factories.pop(registration, None)
        self._results.forget(registration)
        self._picks = {}

    def _load_source(self) -> None:
        with self._lock:
            source, self._source = self._source, None
            if source is None:
                return
            module, _, name = source.partition(":")
            try:
                self._register_all(getattr(import_module(module), name)())
            except BaseException:  # a plug-in's registrations may raise anything, or it is Ctrl-C
                self._source = source  # to be tried again: it must not hide the rest
                raise

    def _register_all(self, registrations: Iterable[Registration]) -> None:
        for registration in registrations:
            try:
                self.register(registration)
            except RegistrationError as error:
                import warnings

                warnings.warn(f"left out {registration.origin}: {error}", stacklevel=2)


def _is_factory_class(factory: object) -> bool:
    return isinstance(factory, type) and issubclass(factory, DeviceFactory)


_default = FactoryRegistry("devicecore.discovery:factories")
DeviceFactory.default_registry = _default


def default_registry() -> FactoryRegistry:
    """Return the registry that `Registrar` fills and managers use unless told otherwise."""
    return _default
