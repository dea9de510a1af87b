"""`OnnxModel`: a model that any device with a provider of ONNX Runtime can run."""

from __future__ import annotations

from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import frozen

from devicecore.errors import ModelError, NotLiveError
from devicecore.ledger import default_ledger
from devicecore.onnx.inputs import Port, check_inputs, input_ports
from devicecore.ort import CPU_PROVIDER, PRECISIONS, open_session
from devicecore.ort.model_file import checked_model, described

if TYPE_CHECKING:
    from collections.abc import Mapping

    from devicecore.device import Device
    from devicecore.ort import OpenedSession, Precision

_CONTAINER = "onnx"
_READ_BYTES = 1 << 20


@frozen
class _Loaded:
    """A model on one device."""

    session: OpenedSession
    ports: tuple[Port, ...]


class OnnxModel:
    """A model, to be run as a kernel: ``device.compute(model, {"x": array})``.

    Each device opens its own session when the model first runs there, and keeps it. The model
    itself holds none, so it pickles and may be used by many devices, threads and processes.

    Args:
        model: The file, or its bytes.
        precision: ``"f32"`` computes in float32 on every device; ``"default"`` leaves it to the
            provider, and some then take bf16.
        min_nodes: The share of the model's nodes, above 0 and up to 1, that the device itself must
            run; None takes any but none at all. What is left runs on the CPU and is in the ledger.

    Raises:
        ValueError: *precision* or *min_nodes* is not one of these.
    """

    # What `DeviceMgr.compute` asks of a kernel: a model may be tried elsewhere, and its provider
    # fetches the arrays from the host by itself.
    pure = True
    reads_host = True

    def __init__(
        self,
        model: bytes | str | Path,
        *,
        precision: Precision = "f32",
        min_nodes: float | None = None,
    ) -> None:
        if precision not in PRECISIONS:
            msg = f"precision is {precision!r}; it can be {' or '.join(map(repr, PRECISIONS))}"
            raise ValueError(msg)
        if min_nodes is not None and not 0 < min_nodes <= 1:
            msg = f"min_nodes is {min_nodes!r}; it is a share of the nodes, above 0 and up to 1"
            raise ValueError(msg)
        self.model: bytes | Path = model if isinstance(model, bytes) else Path(model)
        self.precision: Precision = precision
        self.min_nodes = min_nodes

    @property
    def name(self) -> str:
        """The file's name, or a few words for bytes."""
        return self.model.name if isinstance(self.model, Path) else described(self.model)

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the model, in hexadecimal digits; read once.

        Raises:
            ModelError: The file cannot be read or is plainly no model.
        """
        checked = checked_model(self.model)
        if isinstance(checked, bytes):
            return sha256(checked).hexdigest()
        digest = sha256()
        try:
            with Path(checked).open("rb") as file:
                while chunk := file.read(_READ_BYTES):
                    digest.update(chunk)
        except OSError as error:
            raise ModelError(checked, f"it cannot be read ({error.strerror})") from error
        return digest.hexdigest()

    def __call__(self, device: Device, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """Run the model on *device*; use ``device.compute(model, feeds)``.

        Args:
            device: A device with a provider of ONNX Runtime.
            feeds: A numpy array for each input, of its dtype and rank.

        Returns:
            A numpy array for each output, in the model's order; a later call does not change it.

        Raises:
            ModelError: The model is at fault, or *feeds* do not fit its inputs.
            NotLiveError: The device has no provider, or it does not work.
            OutOfMemoryError: The device has too little memory.
            MissingDependencyError: ONNX Runtime is not installed.
        """
        loaded = self._on(device)
        check_inputs(self.name, loaded.ports, feeds)
        return loaded.session.run(feeds)

    def why_not_on(self, device: Device) -> str:
        """Return why *device* cannot run models, or an empty string."""
        return "" if device.session else "ONNX Runtime has no provider for it"

    def session(self, device: Device) -> OpenedSession:
        """Return the session that runs this model on *device*, opened if it is not yet.

        Raises:
            ModelError: The model is at fault.
            NotLiveError: The device has no provider, or it does not work.
            OutOfMemoryError: The device has too little memory.
            MissingDependencyError: ONNX Runtime is not installed.
        """
        return self._on(device).session

    def _on(self, device: Device) -> _Loaded:
        key = (self.digest, self.precision, self.min_nodes, device.session)
        return device.resource_mgr.lookup_or_create(_CONTAINER, key, lambda: self._load(device))

    def _load(self, device: Device) -> _Loaded:
        spec = device.session
        if spec is None:
            reason = "ONNX Runtime has no provider for it"
            raise NotLiveError(device.name, "absent", reason, "choose a device that runs onnx")
        session = open_session(self.model, spec, precision=self.precision, min_nodes=self.min_nodes)
        left = session.total_nodes - session.live_nodes
        if left and spec.provider != CPU_PROVIDER:
            reason = f"{spec.provider} does not take {left} of the {session.total_nodes} nodes"
            default_ledger().record(self.name, device.name, "CPU", reason)
        return _Loaded(session, input_ports(session.session))

    def __repr__(self) -> str:
        return f"OnnxModel({self.name!r}, precision={self.precision!r}, min_nodes={self.min_nodes})"
