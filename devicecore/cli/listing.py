"""The list of devices: the live ones, and for each other one the state, the reason and the fix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from devicecore.cli.progress import progress
from devicecore.cli.table import FIX_LABEL, heading, print_table, size, wrapped_label
from devicecore.device_factory import default_registry
from devicecore.device_mgr import DeviceMgr

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import TextIO

    from devicecore.device import Device
    from devicecore.device_factory import Candidate


def print_devices(out: TextIO) -> None:
    """Probe all devices that were not tried yet, and print them."""
    manager, candidates = gather()
    heading("live", out)
    print_table([_row(device) for device in _best_first(manager)], out)
    partly = [
        (candidate.registration.device_type, f"for {framework}: {answer.state}", answer)
        for candidate in candidates
        if candidate.chosen
        for framework, answer in candidate.liveness.frameworks.items()
        if not answer.is_live
    ]
    served = {candidate.registration.device_type for candidate in candidates if candidate.chosen}
    others = [
        (candidate.registration.device_type, candidate.liveness.state, candidate.liveness)
        for candidate in candidates
        if not candidate.chosen and not _is_a_spare(candidate, served)
    ]
    for title, entries in (("partly live", partly), ("not live", others)):
        if not entries:
            continue
        heading(title, out)
        # What two factories of a type both say is said once.
        told = dict.fromkeys((name, state, each.reason, each.fix) for name, state, each in entries)
        rows = []
        for name, state, reason, fix in told:
            rows.append((name, state, reason))
            if fix:
                rows.append(("", "", f"{FIX_LABEL}{fix}"))
        print_table(rows, out, wrap=wrapped_label)
    manager.close()


def gather() -> tuple[DeviceMgr, list[Candidate]]:
    """Return a manager of all live devices, and every candidate with its liveness."""
    with progress() as show:
        show("probing the devices")
        manager = DeviceMgr.create()
    return manager, default_registry().explain()


def devices_as_data() -> dict[str, Any]:
    """Return the list of devices as plain data."""
    manager, candidates = gather()
    data = {
        "devices": [_device_as_data(device) for device in _best_first(manager)],
        "candidates": [candidate_as_data(candidate) for candidate in candidates],
    }
    manager.close()
    return data


def candidate_as_data(candidate: Candidate) -> dict[str, Any]:
    """Return one candidate as plain data."""
    registration = candidate.registration
    return {
        "device_type": registration.device_type,
        "priority": candidate.priority,
        "origin": registration.origin,
        "chosen": candidate.chosen,
        "ties": list(candidate.ties),
        "probed_in_this_process": registration.target is None,
        **candidate.liveness.to_json(),
    }


def _device_as_data(device: Device) -> dict[str, Any]:
    return {
        "name": device.name,
        "device_class": device.device_class,
        "description": device.attributes.description,
        "physical_id": device.physical_id,
        "memory_bytes": device.attributes.memory_limit,
        "frameworks": sorted(device.frameworks),
        "torch_device": device.torch_device,
    }


def _best_first(manager: DeviceMgr) -> Iterator[Device]:
    return iter(sorted(manager, key=manager.rank))


def _row(device: Device) -> tuple[str, ...]:
    return (
        f"{device.device_type}:{device.parsed_name.index}",
        device.device_class,
        size(device.attributes.memory_limit),
        ", ".join(sorted(device.frameworks)) or "-",
        device.attributes.description,
    )


def _is_a_spare(candidate: Candidate, served: Collection[str]) -> bool:
    """Return whether nothing is wrong: it waits for another device, or is not needed beside one."""
    registration, liveness = candidate.registration, candidate.liveness
    waits = registration.after_class is not None and not liveness.is_live
    is_served = registration.device_type in served
    return waits or (is_served and liveness.state in ("shadowed", "missing", "absent"))
