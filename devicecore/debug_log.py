"""How choices are made, for the logger ``devicecore`` at DEBUG."""

from __future__ import annotations

import sys


def debug(text: str, *args: object) -> None:
    """Log *text* with *args* put in.

    Costs nothing where the program has not imported logging, and so wants to read nothing.
    """
    if logging := sys.modules.get("logging"):
        logging.getLogger("devicecore").debug(text, *args)


def listed(reasons: dict[str, str]) -> str:
    """Return names with the reasons why they were passed over, for one line."""
    return "; ".join(f"{name}: {reason}" for name, reason in reasons.items()) or "nothing"
