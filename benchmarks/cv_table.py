"""Writes the table of kernels in the documentation from the kept results of `cv_parity`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent.parent / "docs/reference/cv.md"
RESULTS = Path(__file__).parent / "results"
KEPT = ("cv-parity-cpu.json", "cv-parity-cuda.json")
_BETWEEN = re.compile(r"(?<=<!-- kernels -->\n).*(?=<!-- end -->)", re.DOTALL)


def table(results: list[dict[str, Any]]) -> str:
    """Return the table, with a column of differences for each result."""
    devices = [result["machine"]["device"] for result in results]
    lines = [
        "| function | exact | near | OpenCV itself | "
        + " | ".join(f"largest difference, {device}" for device in devices)
        + " |",
        "|---" * (4 + len(devices)) + "|",
    ]
    for name, first in results[0]["functions"].items():
        counts = {promise: tally["calls"] for promise, tally in first["promises"].items()}
        near = {key: count for key, count in counts.items() if key not in {"exact", "host"}}
        function, *kind = name.split(", ")
        cells = [
            ", ".join([f"`{function}`", *kind]),
            str(counts.get("exact", 0)),
            ", ".join(f"{count} {promise}" for promise, count in near.items()),
            str(counts.get("host", 0)),
            *(_largest(result["functions"].get(name)) for result in results),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _largest(found: dict[str, Any] | None) -> str:
    if found is None:
        return "not run"
    largest = max(tally["largest"] for tally in found["promises"].values())
    return f"{largest:g} of {found['values']} values"


def main() -> None:
    """Write the table into the page."""
    found = [json.loads((RESULTS / name).read_text(encoding="utf-8")) for name in KEPT]
    page = PAGE.read_text(encoding="utf-8")
    text = _BETWEEN.sub(lambda _: "\n" + table(found) + "\n", page)
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
