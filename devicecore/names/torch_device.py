"""torch's names of devices in one form, so that equal devices have equal names."""

from __future__ import annotations

_WITHOUT_INDEX = frozenset({"cpu", "meta"})


def canonical_torch_device(text: str) -> str:
    """Return torch's name *text* of a device as the tensors on it say it.

    The host has no index there, every other device has one: ``"mps:0"`` where programs write
    ``"mps"``.

    Examples:
        >>> canonical_torch_device("mps"), canonical_torch_device("cuda:1")
        ('mps:0', 'cuda:1')
        >>> canonical_torch_device("cpu:0")
        'cpu'
    """
    kind, _, index = text.partition(":")
    if not kind or kind in _WITHOUT_INDEX:
        return kind
    return f"{kind}:{index or 0}"
