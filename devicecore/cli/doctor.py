"""``devicecore doctor``: every candidate with all that is known, and what is wrong here."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import asdict

from devicecore.cli.listing import candidate_as_data
from devicecore.cli.progress import progress
from devicecore.cli.table import heading, print_table, wrapped_fix
from devicecore.cli.usage import UsageError
from devicecore.device_factory import default_registry
from devicecore.doctor import Case, Session, diagnose, machine, sessions_to_try, tried, write_bundle
from devicecore.names import spelled

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterator, Sequence
    from typing import TextIO

    from devicecore.device_factory import Candidate
    from devicecore.doctor import Finding

_EVIDENCE = {
    "metadata": "reading files",
    "opened": "an answer of the runtime",
    "ran": "running something",
}
_DETAIL_LINES = 12


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's arguments to *parser*."""
    parser.add_argument("type", metavar="TYPE", nargs="?", help="only this device type or class")
    parser.add_argument(
        "--deep", action="store_true", help="probe everything anew, which may take a minute"
    )
    parser.add_argument("--json", action="store_true", help="print plain data")
    parser.add_argument(
        "--bundle", metavar="FILE", type=Path, help="also write a text file for a bug report"
    )
    group = parser.add_argument_group("about a session of your program")
    group.add_argument("--model", metavar="FILE", type=Path, help="the model that it opens")
    group.add_argument(
        "--provider", metavar="NAME", help="the provider that it asks for; else each one here"
    )
    group.add_argument(
        "--option",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="an option that it gives to the provider",
    )
    group.add_argument("--library", metavar="FILE", help="the plug-in that brings the provider")


def run(args: Namespace, out: TextIO) -> int:
    """Run the command; what it finds goes to *out*, and the code is 1 where something is wrong.

    Raises:
        UnknownDeviceError: Nobody registered the type.
        InvalidDeviceNameError: It is no device type.
        UsageError: The arguments do not go together, or the bundle cannot be written.
        ModelError: The model is at fault.
        MissingDependencyError: A session is asked about, and ONNX Runtime is not installed.
    """
    registry = default_registry()
    device_type = _registered(args.type) if args.type else None
    with progress() as show:
        sessions = []
        for session in _asked_about(args):
            show(f"opening a session of {session.title} on {session.provider}")
            sessions.append(tried(session))
        show("probing the devices" if args.deep else "looking at the machine")
        if args.deep:
            registry.refresh()
        candidates = registry.explain(device_type, deep=args.deep)
        findings = None if device_type else diagnose(Case(tuple(candidates), tuple(sessions)))
    if args.bundle:
        report = StringIO()
        # Not wrapped: a name or a secret that goes over two lines would not be found again.
        _print(candidates, findings, report, wraps=False)
        try:
            write_bundle(args.bundle, report.getvalue())
        except OSError as error:
            msg = f"{args.bundle} cannot be written: {error.strerror}"
            raise UsageError(msg) from error
    if args.json:
        data = {
            **machine(),
            "candidates": [candidate_as_data(candidate) for candidate in candidates],
            "findings": None if findings is None else [asdict(each) for each in findings],
        }
        print(json.dumps(data, indent=2), file=out)
        return _code(findings)
    _print(candidates, findings, out)
    if not args.deep and any(entry.liveness.state == "untried" for entry in candidates):
        print("nothing was run; --deep probes what is untried", file=out)
    return _code(findings)


def _code(findings: Sequence[Finding] | None) -> int:
    return int(any(not finding.is_advice for finding in findings or ()))


def _asked_about(args: Namespace) -> tuple[Session, ...]:
    if args.type and (args.model or args.provider):
        msg = "a device type and a session are two questions; ask one of them"
        raise UsageError(msg)
    if args.provider is None:
        if args.option or args.library:
            msg = "--option and --library say how a provider is asked for; name it with --provider"
            raise UsageError(msg)
        return sessions_to_try(args.model) if args.model else ()
    options = dict(map(_key_and_value, args.option))
    return (Session(args.provider, options, args.model, args.library),)


def _key_and_value(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key and equals):
        msg = f"--option {text} names no key and its value"
        raise UsageError(msg, "write it as --option KEY=VALUE")
    return key, value


def _print(
    candidates: Sequence[Candidate],
    findings: Sequence[Finding] | None,
    out: TextIO,
    *,
    wraps: bool = True,
) -> None:
    for finding in findings or ():
        heading(f"{'advice ' if finding.is_advice else 'finding'}  {finding.name}", out)
        rows = [("problem", finding.problem), ("seen", finding.evidence), ("fix", finding.fix)]
        _print_facts(rows, out, wraps=wraps)
    print(_summary(candidates, findings), file=out)
    for candidate in candidates:
        registration = candidate.registration
        taken = ", taken" if candidate.chosen else ""
        heading(f"{registration.device_type}  {candidate.liveness.state}{taken}", out)
        _print_facts(list(_facts(candidate)), out, wraps=wraps)


def _print_facts(rows: Sequence[tuple[str, str]], out: TextIO, *, wraps: bool) -> None:
    width = max(len(label) for label, _ in rows)
    for label, text in rows:
        wrap = wrapped_fix if label == "fix" else None
        print_table([(label.ljust(width), text)], out, last_wraps=wraps, wrap=wrap)


def _summary(candidates: Sequence[Candidate], findings: Sequence[Finding] | None) -> str:
    live = dict.fromkeys(
        candidate.registration.device_type for candidate in candidates if candidate.liveness.is_live
    )
    if findings is None:
        found = "one type only; `devicecore doctor` without it looks for what is wrong"
    else:
        advice = sum(finding.is_advice for finding in findings)
        count = len(findings) - advice
        found = f"{count} finding{'s' * (count != 1)}" if count else "no findings"
        found += f", advice on {advice}" if advice else ""
    return f"summary  {found}; live: {', '.join(live) or 'nothing'}"


def _registered(text: str) -> str:
    """Return the type or class that *text* names; explaining it raises if nobody registered it."""
    return spelled(text, default_registry().known_types).device_type or text


def _facts(candidate: Candidate) -> Iterator[tuple[str, str]]:
    registration, liveness = candidate.registration, candidate.liveness
    yield "from", f"{registration.origin}, priority {candidate.priority}"
    if registration.target is None:
        yield "risk", "no other process can import it, so it is probed in this one, and may end it"
    if candidate.ties:
        yield "ties", f"same priority: {', '.join(candidate.ties)}"
    if liveness.reason:
        yield "why", liveness.reason
    for framework, answer in liveness.frameworks.items():
        if (answer.state, answer.reason) != (liveness.state, liveness.reason):
            yield framework, ": ".join(filter(None, (answer.state, answer.reason, answer.fix)))
    yield "known", f"by {_EVIDENCE[liveness.evidence]}, in {liveness.seconds:.2f} s"
    for line in liveness.detail.splitlines()[-_DETAIL_LINES:]:
        yield "detail", line
    if liveness.fix:
        yield "fix", liveness.fix
