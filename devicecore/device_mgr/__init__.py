"""The manager of devices: who is there, who goes first, and what runs where."""

from devicecore.device_mgr.manager import LOCAL_TASK, DeviceMgr

__all__ = ["LOCAL_TASK", "DeviceMgr"]


def __dir__() -> list[str]:
    return sorted(__all__)
