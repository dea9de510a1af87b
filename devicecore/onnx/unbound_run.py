"""Runs without a binding, for what cannot be bound; tensors of torch still come out as such."""

from __future__ import annotations

import sys
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from devicecore.ort.io_binding import HOST, takes_host_memory

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from devicecore.onnx.arrays import Described
    from devicecore.onnx.ports import Port
    from devicecore.ort import OpenedSession, SessionSpec


def has_no_address(
    ports: Iterable[Port], described: Mapping[str, Described], spec: SessionSpec
) -> bool:
    """Return whether a binding would give one of the arrays no address.

    A provider gets a copy of what is bound in memory of its own, which for an array without
    elements is at no address. OpenVINO refuses that; a plain run passes the array's own address,
    where numpy has all of the element types.
    """
    if takes_host_memory(spec) or not all(each.element and each.element.in_numpy for each in ports):
        return False
    return any(
        0 in each.shape and each.memory == HOST and each.kind != "ort"
        for each in described.values()
    )


def run_unbound(
    session: OpenedSession, feeds: Mapping[str, Any], described: Mapping[str, Described]
) -> dict[str, Any]:
    """Run *session* on *feeds* and return its outputs.

    Numbers come out as tensors of torch, on the GPU where one lies, if an input is one; texts and
    sequences as ONNX Runtime gives them.

    Args:
        session: The session.
        feeds: An array for each input.
        described: What is known of those that are tensors.

    Raises:
        ModelError: The model cannot take these values.
        NotLiveError: The provider failed.
        OutOfMemoryError: The device has too little memory.
    """
    tensors = [each for each in described.values() if each.kind == "torch"]
    arrays = {
        name: value.detach().numpy(force=True)
        if name in described and described[name].kind == "torch"
        else value
        for name, value in feeds.items()
    }
    outputs = session.run(arrays)
    for name in outputs.keys() & feeds.keys():  # an input that is an output is the same memory
        outputs[name] = copy(outputs[name])
    if not tensors:
        return outputs
    place = next((each.memory for each in tensors if each.memory != HOST), HOST)
    return {name: _as_tensor(value, place) for name, value in outputs.items()}


def _as_tensor(value: Any, place: str) -> Any:
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "biufc":
        return value
    return sys.modules["torch"].from_numpy(value).to(place)
