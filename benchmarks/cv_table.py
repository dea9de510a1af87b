"""Writes the documentation's tables of kernels and of speeds from the kept results."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from devicecore.cv import catalog

PAGE = Path(__file__).parent.parent / "docs/reference/cv.md"
RESULTS = Path(__file__).parent / "results"
KEPT = ("cv-parity-cpu.json", "cv-parity-cuda.json")
SPEEDS = RESULTS / "cv-functions-h200.json"


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
    lines += [f"| `{name}` |  |  | all |" + "  |" * len(devices) for name in catalog.HOST]
    return "\n".join(lines) + "\n"


def _largest(found: dict[str, Any] | None) -> str:
    if found is None:
        return "not run"
    largest = max(tally["largest"] for tally in found["promises"].values())
    return f"{largest:g} of {found['values']} values"


def speeds(result: dict[str, Any]) -> str:
    """Return the table of speeds on a GPU; numbers that were not measured are left out."""
    columns = {
        "µs": ("ours, us", ".0f"),
        "of the memory's limit": ("of the limit", ".2f"),
        "of CV-CUDA's speed": ("times CV-CUDA", ".2f"),
        "host, µs": ("host for one image, us", ".0f"),
    }
    lines = ["| call | " + " | ".join(columns) + " |", "|---" * (1 + len(columns)) + "|"]
    for name, row in result["calls"].items():
        cells = [format(row[key], form) if key in row else "" for key, form in columns.values()]
        lines.append("| " + " | ".join([name, *cells]) + " |")
    peer = result["host for torch.add, us"]
    lines.append(f"| `torch.add` of 16 numbers |  |  |  | {peer:.0f} |")
    return "\n".join(lines) + "\n"


def _written(page: str, marker: str, text: str) -> str:
    between = rf"(?<=<!-- {marker} -->\n).*?(?=<!-- end -->)"
    return re.sub(between, lambda _: "\n" + text + "\n", page, flags=re.DOTALL)


def main() -> None:
    """Write the tables into the page."""
    found = [json.loads((RESULTS / name).read_text(encoding="utf-8")) for name in KEPT]
    page = PAGE.read_text(encoding="utf-8")
    page = _written(page, "kernels", table(found))
    page = _written(page, "speeds", speeds(json.loads(SPEEDS.read_text(encoding="utf-8"))))
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
