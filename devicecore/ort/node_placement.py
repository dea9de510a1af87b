"""Which provider runs how many nodes of a session: that it lists a provider proves nothing."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

RECORD_KEY = "session.record_ep_graph_assignment_info"


def can_record(ort: Any) -> bool:
    """Return whether this ONNX Runtime tells the assignment itself (1.24 and newer)."""
    return hasattr(ort.InferenceSession, "get_provider_graph_assignment_info")


def recorded_nodes(session: Any) -> Mapping[str, int]:
    """Return the nodes of each provider, for a session opened with `RECORD_KEY` set to 1."""
    counts: Counter[str] = Counter()
    for part in session.get_provider_graph_assignment_info():
        counts[part.ep_name] += len(part.get_nodes())
    return dict(counts)


def profiled_nodes(session: Any) -> Mapping[str, int] | None:
    """Return the nodes that each provider ran, for a profiled session that has run once.

    Ends the profile and deletes its file. None where the session could not write one.
    """
    path = Path(session.end_profiling())
    try:
        events = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # no folder for it, or no room in one
        return None
    finally:
        with suppress(OSError):
            path.unlink()
    ran = {
        event["name"]: event["args"]["provider"]
        for event in events
        if event.get("cat") == "Node" and event.get("args", {}).get("provider")
    }
    return dict(Counter(ran.values()))
