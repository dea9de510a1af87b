"""torch's names of devices in one form, so that equal devices have equal names."""

from __future__ import annotations

_WITHOUT_INDEX = frozenset({"cpu", "meta"})


def canonical_torch_device(text: str) -> str:
    """Return torch's name *text* of a device with its index, as the tensors on it say it.

    Programs write ``"mps"`` where tensors say ``"mps:0"``; the host has no index.

    Examples:
        >>> canonical_torch_device("mps"), canonical_torch_device("cuda:1")
        ('mps:0', 'cuda:1')
        >>> canonical_torch_device("cpu")
        'cpu'
    """
    is_whole = not text or ":" in text or text in _WITHOUT_INDEX
    return text if is_whole else f"{text}:0"
