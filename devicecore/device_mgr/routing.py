"""Which device a call runs on, and which one is next if that cannot."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from attrs import frozen

from devicecore.debug_log import debug, listed
from devicecore.device.choices import why_elsewhere
from devicecore.device_mgr.placement import location, reads
from devicecore.device_mgr.policy import parse_policy
from devicecore.errors import (
    DeviceError,
    DeviceGoneError,
    NoKernelError,
    NotLiveError,
    RefusedCallError,
    UnknownDeviceError,
)
from devicecore.kernels import Kernel, default_kernels, fitting_kernels, get_kernel
from devicecore.ledger import default_ledger

if TYPE_CHECKING:
    from devicecore.device import Device
    from devicecore.device_mgr.manager import DeviceMgr
    from devicecore.ledger import Ledger

_MOST_ROUTES = 4096


@frozen(eq=False)
class _Route:
    """The devices that take a kind of call, best first, and what was passed over for the first.

    Attributes:
        devices: Never empty.
        wanted: The first choice, if that is not the first of *devices*.
        why_not: Why it is not.
    """

    devices: tuple[Device, ...]
    wanted: str = ""
    why_not: str = ""


class Router:
    """Finds the device for a call, and remembers it until something changes."""

    def __init__(self, manager: DeviceMgr, ledger: Ledger | None) -> None:
        self._manager = weakref.proxy(manager)
        self._ledger = ledger
        self._routes: dict[tuple[Any, str, str], _Route] = {}

    @property
    def ledger(self) -> Ledger:
        """Where moves are written."""
        return self._ledger or default_ledger()

    def forget(self) -> None:
        """Forget all routes, since devices or kernels changed."""
        self._routes = {}

    kernels_changed = forget

    def compute(
        self, kernel: Any, policy: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Run *kernel* on the first device of its route; see `DeviceMgr.compute`."""
        where = location(args, kwargs)
        try:
            route = self._routes[kernel, policy, where]  # type: ignore[index]  # None is never kept
        except (KeyError, TypeError):
            route = self._route(kernel, policy, where)
        first = route.devices[0]
        if route.wanted:
            self.ledger.record(_title(kernel), route.wanted, first.name, route.why_not)
        try:
            return first.compute(kernel, *args, **kwargs)
        except DeviceError as error:
            if isinstance(error, DeviceGoneError):
                self.forget()  # the next call sets out from a device that is there
            if len(route.devices) == 1 or not _may_retry(kernel, first, error):
                raise
            return self._fail_over(kernel, route.devices, error, args, kwargs)

    def _fail_over(
        self,
        kernel: Any,
        devices: tuple[Device, ...],
        error: DeviceError,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        failed = devices[0]
        for device in devices[1:]:
            self.ledger.record(_title(kernel), failed.name, device.name, str(error))
            try:
                return device.compute(kernel, *args, **kwargs)
            except DeviceError as next_error:
                if not _may_retry(kernel, device, next_error):
                    raise
                failed, error = device, next_error
        raise error

    def best(self, op: str | None, framework: str | None, policy: str) -> Device:
        """Return the device that goes first; see `DeviceMgr.best_device`."""
        refused: dict[str, str] = {}
        for name, device, reason in self._ordered(policy, framework):
            if device is None:
                refused[name] = reason
            elif framework is not None and framework not in device.frameworks:
                refused[name] = f"it is not live for {framework}"
            elif op is not None and (no_kernel := _holder(op, device, policy)[1]):
                refused[name] = no_kernel
            else:
                return device
        if op is not None:
            raise NoKernelError(op, _any_under(policy), refused, default_kernels().fix(op))
        reasons = "; ".join(f"{name}: {reason}" for name, reason in refused.items())
        what = f"a device for {framework or 'anything'}"
        raise NotLiveError(what, "absent", reasons)

    def _route(self, kernel: Any, policy: str, where: str | None) -> _Route:
        routes = self._routes  # what changes meanwhile puts another table in its place
        able: list[Device] = []
        refused: dict[str, str] = {}  # those that could have been the first choice
        unread: dict[str, str] = {}
        passed_over: tuple[tuple[str, str], ...] = ()
        for name, device, absent in self._ordered(policy):
            if device is None:
                refused[name] = absent
                continue
            device.kernel_registry.watch(self)
            holder, no_kernel = _holder(kernel, device, policy)
            if not reads(device, where) and (no_kernel or not _reads_host(kernel, holder)):
                unread[name] = f"it does not read arguments in {where or 'several places'}"
            elif no_kernel:
                refused[name] = no_kernel
            else:
                if not able:
                    passed_over = tuple(refused.items())
                able.append(device)
        if not able:
            title = _title(kernel)
            fix = default_kernels().fix(title) if isinstance(kernel, str) else ""
            raise NoKernelError(title, _any_under(policy), refused | unread, fix)
        names, skipped = ", ".join(each.name for each in able), listed(refused | unread)
        debug("%s under %r: %s; passed over: %s", _title(kernel), policy, names, skipped)
        wanted, why_not = passed_over[0] if passed_over else ("", "")
        route = _Route(tuple(able), wanted, why_not)
        # Callables without a name may be made for every call; those are not worth keeping.
        named = isinstance(kernel, (str, Kernel))
        if where is not None and named and len(routes) < _MOST_ROUTES:
            routes[kernel, policy, where] = route
        return route

    def _ordered(
        self, policy: str, framework: str | None = None
    ) -> list[tuple[str, Device | None, str]]:
        """Return name and device for each choice of *policy* in its order.

        In place of a device that is gone or unknown stand None and the reason.
        """
        parsed = parse_policy(policy)
        manager = self._manager
        if parsed.kind == "require":
            required = manager.lookup_device(parsed.names[0], framework)
            return [(required.name, required, "")]
        if parsed.kind == "auto":
            ranked = sorted(manager.list_devices(), key=manager.rank)
            choices: dict[str, Device | str] = {device.name: device for device in ranked}
        else:
            choices = {}
            for name in parsed.names:
                try:
                    device = manager.lookup_device(name, framework)
                except UnknownDeviceError as error:
                    manager.find_devices(name)  # it raises for what is no name at all
                    choices.setdefault(name, error.why or "there is no such device")
                else:
                    choices.setdefault(device.name, device)
        return [
            (name, None, choice)
            if isinstance(choice, str)
            else (name, None if choice.gone else choice, choice.gone)
            for name, choice in choices.items()
        ]


def _any_under(policy: str) -> str:
    return f"any device under the policy {policy!r}"


def _title(kernel: Any) -> str:
    if isinstance(kernel, str):
        return kernel
    title = getattr(kernel, "op", None) or getattr(kernel, "__qualname__", None)
    return str(title or repr(kernel))


def _holder(kernel: Any, device: Device, policy: str) -> tuple[Device, str]:
    """Return whose kernel *device* runs, and why there is none, or an empty string.

    A device that runs models only leaves what else it is asked for by name to the device of its
    memory, which is a choice of its own where no device is named.
    """
    why_not = _why_no_kernel(kernel, device)
    memory = device.memory_device
    if not why_not or memory is device or not isinstance(kernel, str):
        return device, why_not
    if parse_policy(policy).kind == "auto" or _why_no_kernel(kernel, memory):
        return device, why_not
    return memory, ""


def _why_no_kernel(kernel: Any, device: Device) -> str:
    """Return why *device* cannot run *kernel* at all, whatever the arguments, or an empty string.

    A `Kernel` and a model can tell; any other callable runs anywhere.
    """
    if elsewhere := why_elsewhere(device):
        return elsewhere
    if elsewhere := why_elsewhere(device):
        return elsewhere
    if not isinstance(kernel, str):
        why_not_on = getattr(kernel, "why_not_on", None)
        return "" if why_not_on is None else str(why_not_on(device))
    try:
        get_kernel(kernel, device)
    except NoKernelError as error:
        reasons = dict.fromkeys(error.refused.values())  # kernels have them in common
        return "; ".join(reasons) or "nobody registered a kernel for it"
    return ""


def _reads_host(kernel: Any, device: Device) -> bool:
    chosen = get_kernel(kernel, device) if isinstance(kernel, str) else kernel
    return bool(getattr(chosen, "reads_host", False))


def _may_retry(kernel: Any, device: Device, error: DeviceError) -> bool:
    """Return whether nothing can have happened yet, so that another device may try."""
    if isinstance(error, RefusedCallError) and (error.op, error.device) == (
        _title(kernel),
        device.name,
    ):
        return True  # nothing ran; one of another operation was asked for by the kernel itself
    if not isinstance(kernel, str):
        return bool(getattr(kernel, "pure", False))
    fitting, _ = fitting_kernels(kernel, device, "")
    fitting = fitting or fitting_kernels(kernel, device.memory_device, "")[0]
    return all(each.pure for each in fitting)  # any of them may be the one that ran
