"""Names of providers that ONNX Runtime does not know, or no longer."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from devicecore.doctor.diagnosis import Finding
from devicecore.ort import PROVIDERS, ort_package, provider_named
from devicecore.ort.builds import how_to_install
from devicecore.ort.package import is_built_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devicecore.doctor.case import Case, Session

_NAME = "renamed-or-removed-provider"


def find(case: Case) -> Iterator[Finding]:
    """Yield the sessions that ask for such a name, and a build whose provider was removed."""
    package = ort_package()
    for known in PROVIDERS.values():
        if known.device_type in case.absent_types:  # neither the old one nor the new one helps
            continue
        if known.replaced_by and package and is_built_in(known, package):
            successor = provider_named(known.replaced_by)
            yield Finding(
                _NAME,
                f"{package.name} is the last of its kind: {known.name} was removed",
                f"{known.name}: {known.note}",
                how_to_install(successor, package),
            )
    for session in case.sessions:
        known = provider_named(session.provider)
        if known.replaced_by:
            install = how_to_install(provider_named(known.replaced_by), package)
            absent = known.device_type in case.absent_types
            yield Finding(
                _NAME,
                f"{known.name} is no longer a provider, so the session runs on the CPU",
                known.note,
                "choose a provider whose hardware is here"
                if absent
                else f'providers=["{known.replaced_by}"], after: {install}',
            )
        elif session.provider not in PROVIDERS and not session.library:
            yield _unknown(session)


def _unknown(session: Session) -> Finding:
    """Return what to say of a name that nobody knows, such as ``"cuda"``."""
    word = session.provider.lower().removesuffix("executionprovider")
    by_word = {name.lower().removesuffix("executionprovider"): name for name in PROVIDERS}
    close = get_close_matches(word, by_word, n=1)
    return Finding(
        _NAME,
        f"onnxruntime knows no provider {session.provider!r}, and takes the CPU instead",
        f"it knows {', '.join(PROVIDERS)}",
        f'providers=["{by_word[close[0]]}"]'
        if close
        else "--library FILE names the plug-in that brings it",
    )
