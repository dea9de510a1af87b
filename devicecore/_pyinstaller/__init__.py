"""What PyInstaller asks a package: where the hooks are that say what a frozen program needs."""

from __future__ import annotations

from pathlib import Path


def get_hook_dirs() -> list[str]:
    """Return the folder of our hooks, for the entry point that PyInstaller reads."""
    return [str(Path(__file__).parent)]
