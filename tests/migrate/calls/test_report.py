"""What became of calls, counted, and as text, JSON and HTML."""

from __future__ import annotations

import json
import threading
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from devicecore.migrate.calls.report import MOST_REASONS, CallStats, MigrationReport, Tally

if TYPE_CHECKING:
    from collections.abc import Callable

ROW = CallStats(
    "app:f/cv2:resize", "CUDA:0", 10, 7, {"too small": 2, "lost": 1}, 3 << 20, 0.5, 0.25
)


class Cells(HTMLParser):
    """Reads the texts of a page, as a browser would."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        assert not dict(attrs).keys() - {"lang", "charset"}  # nothing else is loaded
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_a_tally_counts() -> None:
    tally = Tally("app:f", "CUDA:0")
    tally.migrated(0.5, 100)
    tally.migrated(0.25, 10)
    tally.fell_back(2.0, "rare")
    for _ in range(2):
        tally.fell_back(1.0, "often")
    row = tally.row()
    assert row == CallStats("app:f", "CUDA:0", 5, 2, {"often": 2, "rare": 1}, 110, 0.75, 4.0)
    assert list(row.reasons) == ["often", "rare"]
    assert row.fell_back == 3


def test_a_tally_counts_right_from_threads() -> None:
    tally = Tally("app:f", "CUDA:0")

    def work(number: int) -> None:
        for turn in range(1000):
            if turn % 2:
                tally.migrated(0.5, 3)
            else:
                tally.fell_back(0.25, f"reason {number % 2}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    row = tally.row()
    assert (row.calls, row.migrated, row.bytes_moved) == (8000, 4000, 12_000)
    assert row.reasons == {"reason 0": 2000, "reason 1": 2000}
    assert (row.device_s, row.host_s) == (2000.0, 1000.0)


def test_reasons_are_one_short_line_and_only_so_many() -> None:
    tally = Tally("app:f", "CUDA:0")
    assert tally.bounded("CUDA error\n  at line 3") == "CUDA error at line 3"
    assert len(tally.bounded("x" * 5000)) == 300
    for number in range(MOST_REASONS + 50):
        tally.fell_back(0, tally.bounded(f"at {number}"))
    row = tally.row()
    assert len(row.reasons) == MOST_REASONS + 1
    assert row.reasons["(other reasons)"] == 50
    assert row.fell_back == MOST_REASONS + 50
    assert tally.bounded("at 3") == "at 3"


def test_a_child_counts_on(in_fork: Callable[[Callable[[], Any]], Any]) -> None:
    tally = Tally("app:f", "CUDA:0")
    tally.migrated(0.5, 1)
    with tally._lock:  # another thread of the parent may hold it

        def child() -> int:
            tally.migrated(0.5, 1)
            return tally.row().calls

        assert in_fork(child) == 2


def test_as_text() -> None:
    lines = str(MigrationReport([ROW], ["cv2.resize: a list"], ["'f': no call"])).splitlines()
    assert (
        " ".join(lines[0].split())
        == "path device calls migrated fell back moved device host first use"
    )
    assert lines[1].split() == [
        "app:f/cv2:resize", "CUDA:0", "10", "7", "3", "3.0", "MiB", "0.500", "s", "0.250", "s",
        "0.000", "s",
    ]  # fmt: skip
    assert lines[2:4] == ["    2 x too small", "    1 x lost"]
    assert lines[4:] == ["still held: cv2.resize: a list", "unmatched: 'f': no call"]
    assert str(MigrationReport([])).splitlines()[1:] == ["no call that the plan is for"]


def test_columns_stand_below_each_other() -> None:
    long = CallStats(
        "package.module:" + "f" * 60, "CUDA:0 (NVIDIA H200)", 10, 7, {}, 3 << 20, 0.5, 0.25
    )
    lines = str(MigrationReport([ROW, long])).splitlines()
    title, short_row, long_row = lines[0], lines[1], lines[4]
    assert len(title) == len(short_row) == len(long_row)
    end = title.index("migrated") + len("migrated")
    assert (short_row[:end].split()[-1], long_row[:end].split()[-1]) == ("7", "7")


def test_as_json() -> None:
    found = json.loads(MigrationReport([ROW], ["held"], ["no call"]).as_json())
    assert (found["still_held"], found["unmatched"]) == (["held"], ["no call"])
    (row,) = found["rows"]
    assert row["reasons"] == {"too small": 2, "lost": 1}
    assert CallStats(**row) == ROW


TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20)


@given(path=TEXTS, device=TEXTS, reason=TEXTS, held=TEXTS, key=TEXTS)
def test_whatever_is_in_a_path_html_and_json_show_it(
    path: str, device: str, reason: str, held: str, key: str
) -> None:
    report = MigrationReport(
        [CallStats(path, device, 2, 1, {reason: 1}, 0, 0.0, 0.0)], [held], [key]
    )
    page = Cells(report.as_html())
    text = "".join(page.texts)
    for each in (path, device, f"1 x {reason}", held, key):
        assert each in text
    assert page.tags.count("td") == 10
    assert "script" not in page.tags
    assert json.loads(report.as_json())["rows"][0]["path"] == path


def test_html_of_a_malicious_name() -> None:
    row = CallStats("<script>alert(1)</script>{rows}", 'a"b', 1, 0, {"<b>&": 1}, 0, 0.0, 0.0)
    page = MigrationReport([row]).as_html()
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;{rows}" in page
    assert "Still held" not in page
    assert "Unmatched" not in page
