"""`SessionDevice`: a device that runs ONNX models and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from devicecore.device import Device
from devicecore.ort import empty_value
from devicecore_factories import _faults

if TYPE_CHECKING:
    from collections.abc import Sequence

    from devicecore.errors import DeviceError


class SessionDevice(Device):
    """A device that runs ONNX models through ONNX Runtime; torch knows it not.

    Its arguments lie in the memory of another device, or in its own as values of ONNX Runtime.
    """

    def allocate(self, shape: Sequence[int], dtype: str) -> Any:
        """Return a new array in `memory_device`'s memory, unset; an ``OrtValue`` in its own.

        Raises:
            OutOfMemoryError: There is too little memory left.
            NotLiveError: ONNX Runtime cannot allocate there.
            DeviceGoneError: The device is gone.
        """
        self.refresh_status()
        if self.memory is not None or self.session is None:
            return super().allocate(shape, dtype)
        try:
            return empty_value(self.session, shape, dtype)
        except Exception as error:
            known = self.device_error(error)
            if known is None:
                raise
            raise known from error

    def device_error(self, error: Exception) -> DeviceError | None:
        """Return what an error of ONNX Runtime means; a lost GPU takes its devices along."""
        return _faults.device_error(self, error)

    def was_opened_before_fork(self) -> bool:
        """Return whether the parent kept a session; its threads and driver are not inherited."""
        return self._resources is not None
