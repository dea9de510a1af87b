"""Text without what a stranger must not read: who works here, where, and with which secrets."""

from __future__ import annotations

import getpass
import re
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from devicecore import config

if TYPE_CHECKING:
    from collections.abc import Iterable

# Whatever looks like a secret, wherever it stands.
_PATTERNS = (
    (re.compile(r"-----BEGIN [^-]+-----.*?(-----END [^-]+-----|\Z)", re.DOTALL), "<key>"),
    (re.compile(r"(?P<kept>\b[a-z][a-z0-9+.-]*://)[^\s/@]+@", re.IGNORECASE), r"\g<kept><secret>@"),
    (
        re.compile(
            r"(?P<kept>\b[\w-]*(?:token|secret|passw(?:or)?d|api[_-]?key|access[_-]?key|credential)"
            r"[\w-]*[\"']?\s*[=:]\s*)(?:bearer\s+)?(\"[^\"]*\"|'[^']*'|[^\s,;&]+)",
            re.IGNORECASE,
        ),
        r"\g<kept><secret>",
    ),
    (
        re.compile(r"(?P<kept>\b(?:bearer|basic)\s+)[\w.~+/=-]{8,}", re.IGNORECASE),
        r"\g<kept><secret>",
    ),
    (re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]*"), "<secret>"),
    (
        re.compile(
            r"\b(?:gh[pousr]_|github_pat_|glpat-|hf_|sk-|pk-|xox[abpres]-|pypi-|npm_|AKIA|ASIA|AIza)"
            r"[\w-]{10,}"
        ),
        "<secret>",
    ),
    (re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]*\w"), "<address>"),
    (re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE), "<id>"),
    # A bare group of four numbers is more often a version than an address.
    (re.compile(r"(?P<kept>://|@)(?:\d{1,3}\.){3}\d{1,3}"), r"\g<kept><address>"),
    (re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}(?=:\d)"), "<address>"),
    # The homes of other people too; Windows writes them with either slash, or both escaped.
    (re.compile(r"(?:[A-Za-z]:)?(?:/|\\{1,2})(?:home|Users)(?:/|\\{1,2})[^/\\\s:\"']+"), "~"),
)


def redacted(text: str) -> str:
    """Return *text* without user and host names, home folders, addresses and secrets."""
    for value in sorted(config.secrets(), key=len, reverse=True):
        text = text.replace(value, "<secret>")
    for folder, label in _folders():
        text = re.sub(rf"{re.escape(folder)}(?![\w.-])", label, text)
    for pattern, label in _PATTERNS:
        text = pattern.sub(label, text)
    for name, label in _names():
        text = re.sub(rf"(?<![^\W_]){re.escape(name)}(?![^\W_])", label, text, flags=re.IGNORECASE)
    return text


def _folders() -> Iterable[tuple[str, str]]:
    """Return the folders to hide, longest first, so that none hides the start of another."""
    places = {
        str(Path(sys.prefix)): "<environment>",
        str(Path(sys.base_prefix)): "<python>",
        str(Path.cwd()): "<folder>",
    }
    if cache := config.load().cache_dir:
        places[str(cache)] = "<cache>"
    if home := _home():
        places |= {str(home): "~", str(home.resolve()): "~"}
    found = [(place, label) for place, label in places.items() if place != Path(place).anchor]
    return sorted(found, key=lambda pair: len(pair[0]), reverse=True)


def _home() -> Path | None:
    try:
        return Path.home()
    except RuntimeError:  # a container's user may have none
        return None


def _names() -> Iterable[tuple[str, str]]:
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a container's user may have no name
        user = ""
    host = socket.gethostname()
    names = {host: "<host>", host.partition(".")[0]: "<host>"}
    if home := _home():
        names[home.name] = "<user>"
    return [(name, label) for name, label in {**names, user: "<user>"}.items() if name]
