"""`resolve`: which device a program gets, and why it is not a better one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import frozen

from devicecore.debug_log import debug, listed
from devicecore.device import Device
from devicecore.device_factory.refusals import refusals
from devicecore.device_mgr.policy import parse_policy
from devicecore.errors import NotLiveError, UnknownDeviceError
from devicecore.liveness.causes import Refusal, causes
from devicecore.names import DEVICE_CLASSES, DeviceName, checked_framework
from devicecore.resolution.explanation import explanation
from devicecore.runtime import default_runtime
from devicecore.scope.parse_device import read

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devicecore.runtime import Runtime

AUTO = "auto"


@frozen
class Rejected(Refusal):
    """A choice that went before, and why it was not taken.

    Attributes:
        name: A device type, or a name of the user's list.
        state: Its state, such as ``absent`` or ``broken``.
        reason: Why, in one line.
        fix: What to do about it.
    """


@frozen
class Resolution:
    """The device that a program gets, and why.

    Attributes:
        device: The device.
        why: Why it is this one, in one line.
        rejected: What went before it, in order, with the reasons.
    """

    device: Device
    why: str
    rejected: tuple[Rejected, ...] = ()

    def explain(self) -> str:
        """Return sentences for a person: what is used, then a line for each cause of no better one.

        What exists on other systems only is left out; so is, in a frozen program, advice on pip.
        """
        return explanation(self)


def resolve(
    request: str | DeviceName | Device = AUTO,
    *,
    framework: str | None = None,
    policy: str | None = None,
    runtime: Runtime | None = None,
) -> Resolution:
    """Return the device for a request; a pure query that leaves no default behind.

    Only what is asked for is probed, in the order of choice, until something is live.

    Args:
        request: ``"auto"`` for the best live device, a family such as ``"gpu"``, a name, or
            whatever else `device_scope` takes, such as a ``torch.device``.
        framework: What it must be live for, ``"torch"`` or ``"onnx"``; None for anything.
        policy: ``"prefer:cuda:1,cpu"`` for the first live one of a list, ``"require:cuda"`` for one
            and no other; takes the place of *request*.
        runtime: Whose devices; None for those of this process.

    Raises:
        NotLiveError: What was asked for does not work here.
        UnknownDeviceError: There is no such device.
        InvalidDeviceNameError: A name is none.
        TypeError: *request* is nothing that means a device.
        ValueError: *framework* or *policy* is none, or both *request* and *policy* name devices.
    """
    framework = None if framework is None else checked_framework(framework)
    wanted: Any = request
    if not isinstance(wanted, str | DeviceName | Device):
        wanted = read(wanted)
    elif isinstance(wanted, str) and wanted.casefold() == AUTO:
        wanted = AUTO
    found = _resolved(runtime or default_runtime(), wanted, framework, policy)
    skipped = listed({each.name: f"{each.state}, {each.reason}" for each in found.rejected})
    asked = policy or wanted
    text = "resolve %s for %s: %s, since %s; passed over: %s"
    debug(text, asked, framework or "anything", found.device.name, found.why, skipped)
    return found


def _resolved(
    source: Runtime,
    request: str | DeviceName | Device,
    framework: str | None,
    policy: str | None,
) -> Resolution:
    if isinstance(request, Device):
        return Resolution(request, "it was handed over")
    chosen = parse_policy(policy or AUTO)
    if AUTO not in (chosen.kind, request):
        msg = f"the request {str(request)!r} and the policy {policy!r} both name devices; give one"
        raise ValueError(msg)
    if chosen.kind == "prefer":
        return _first_live(source, chosen.names, framework, "the first live one of the list")
    if chosen.kind == "require":
        return _exactly(source, chosen.names[0], framework)
    parsed = DeviceName() if request == AUTO else source.parsed(request)
    if parsed == DeviceName():  # nothing is said of the device
        types = tuple(automatic_types(source))
        why = "the highest priority of what is live"
        return _first_live(source, types, framework, why, named=False)
    if (
        parsed.device_type in DEVICE_CLASSES
        and parsed.device_type not in source.registry.known_types
    ):
        return _best_of_class(source, parsed, framework)
    return _exactly(source, request, framework)


def _exactly(source: Runtime, name: str | DeviceName, framework: str | None) -> Resolution:
    return Resolution(source.device(name, framework), f"{name} was asked for")


def _best_of_class(source: Runtime, name: DeviceName, framework: str | None) -> Resolution:
    try:
        device = source.device(name, framework)
    except UnknownDeviceError:
        kind = str(name.device_type)
        reasons = causes(refusals(source.registry, kind, framework, deep=True))
        what = f"a device of class {name.device_type}"
        raise NotLiveError(what, "absent", reasons) from None
    return Resolution(device, f"the best {name.device_type} that is live")


def automatic_types(source: Runtime) -> Iterator[str]:
    """Yield the types that may be chosen without being named, in order."""
    registry = source.registry
    for device_type in registry.device_types:
        if not all(entry.only_named for entry in registry.factories(device_type)):
            yield device_type


def _first_live(
    source: Runtime, names: tuple[str, ...], framework: str | None, why: str, *, named: bool = True
) -> Resolution:
    rejected: list[Rejected] = []
    for name in names:
        try:
            if not named:
                _check_unnamed(source, name, framework)
            device = source.device(name, framework)
        except NotLiveError as error:
            rejected.append(Rejected(name, error.state, error.reason, error.fix))
        except UnknownDeviceError as error:
            rejected.append(Rejected(name, "absent", error.why or "there is no such device"))
        else:
            return Resolution(device, why, tuple(rejected))
    what = f"a device for {framework}" if framework else "a device"
    reasons = causes(rejected)
    raise NotLiveError(what, "absent", reasons, next((e.fix for e in rejected if e.fix), ""))


def _check_unnamed(source: Runtime, device_type: str, framework: str | None) -> None:
    """Raise `NotLiveError` where nothing of a type is live but what has to be named."""
    entries = source.registry.factories(device_type)
    if not any(entry.only_named for entry in entries):
        return
    answers = [
        source.registry.liveness_of(entry, framework) for entry in entries if not entry.only_named
    ]
    if not any(answer.is_live for answer in answers):
        first = answers[0]
        raise NotLiveError(device_type, first.state, first.reason, first.fix)
