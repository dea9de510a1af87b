"""How a session is opened on one device, as a value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import field, frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

CPU_PROVIDER = "CPUExecutionProvider"


def _copied(options: Mapping[str, str]) -> dict[str, str]:
    return dict(options)


@frozen
class SessionSpec:
    """Which provider serves a device, and how it is told so; compares, hashes and pickles.

    Attributes:
        provider: ONNX Runtime's name of it, such as ``"CUDAExecutionProvider"``.
        options: The provider's own options, such as ``{"device_id": "1"}``.
        ep_device_index: Which of the provider's EpDevices is meant, counted from 0; None for a
            provider built into ONNX Runtime, which is then asked for by name.
        library: The file of the plug-in that brings the provider; None where none is needed.
    """

    provider: str
    # A mapping has no hash; equal specs still have equal hashes without it.
    options: Mapping[str, str] = field(factory=dict, converter=_copied, hash=False)
    ep_device_index: int | None = None
    library: str | None = None

    @property
    def is_plugin(self) -> bool:
        """Whether the provider is reached through an EpDevice rather than by its name."""
        return self.ep_device_index is not None or self.library is not None
