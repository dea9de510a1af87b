"""`StrategyRegistry`: which functions can be computed on a device, and how."""

from __future__ import annotations

import json
import tomllib
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from devicecore.errors import RegistrationError
from devicecore.migrate import processors
from devicecore.migrate.strategy import MigrationStrategy

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping

    from devicecore.migrate.strategy import Strategy

    Group = Callable[[], Mapping[str, Strategy]]

# What files may call processors, besides ``package.module:name``.
_PROCESSORS = ("EnsureTensor", "KeepOnDevice", "PassThrough", "SwapArgs", "ToNumpy")
_FIELDS = frozenset({"backend", "inputs", "named_inputs", "arguments", "output"})


class StrategyRegistry:
    """The strategies, by the names of the functions that they are for.

    A name is dotted, ``scipy.signal.resample``, or has a colon after the module.
    """

    def __init__(self) -> None:
        self._strategies: dict[str, Strategy] = {}
        self._groups: dict[str, Group] = {}

    def register(self, name: str, strategy: Strategy | None = None, **how: Any) -> Any:
        """Compute a function by a strategy from now on; a later one takes the place of it.

        Args:
            name: The function.
            strategy: What computes it. Without one this returns a decorator, which makes a
                `MigrationStrategy` of the backend that it decorates.
            how: What else such a strategy is made with.

        Raises:
            RegistrationError: It is no strategy.

        Examples:
            >>> from devicecore.migrate import EnsureTensor, StrategyRegistry
            >>> registry = StrategyRegistry()
            >>> @registry.register("statistics.fmean", input_processors=[EnsureTensor()])
            ... def fmean(data):
            ...     return data.double().mean().item()
        """
        if strategy is None:
            return partial(self._decorate, name, how)
        if not callable(getattr(strategy, "compute", None)):
            reason = f"{strategy!r} has no compute(device, options, original, args, kwargs)"
            raise RegistrationError(name, reason, "make a MigrationStrategy of the backend")
        self._strategies[_dotted(name)] = strategy
        return strategy

    def _decorate(self, name: str, how: Mapping[str, Any], backend: Any) -> Any:
        self.register(name, MigrationStrategy(backend=backend, **how))
        return backend

    def register_group(self, package: str, group: Group) -> None:
        """Ask *group* for the strategies of a package's functions once they are needed.

        Args:
            package: The name of the package that a program imports, such as ``"cv2"``.
            group: Returns the strategies by names; called at most once.
        """
        self._groups[package] = group

    def load(self, path: str | os.PathLike[str]) -> None:
        """Register what a file of TOML or JSON says; nothing that it names is imported now.

        Each entry is a table with the function's name. It has a ``backend``, and perhaps
        ``inputs``, ``named_inputs``, ``arguments`` (an `ArgMapper`) and ``output``; each is
        ``package.module:name``, or the name of a processor of devicecore.

        Raises:
            RegistrationError: The file, or an entry of it, is not as it should be.
        """
        for name, entry in _entries(Path(path)).items():
            self.register(name, _of_entry(name, entry))

    def find(self, module: str, qualname: str) -> Strategy | None:
        """Return what computes a function, or None.

        Args:
            module: Where the function is.
            qualname: Its name there, with its classes.
        """
        self._load_group(module.partition(".")[0])
        return self._strategies.get(f"{module}.{qualname}")

    @property
    def packages(self) -> frozenset[str]:
        """The packages that functions with a strategy are in."""
        return frozenset({*self._groups, *(name.partition(".")[0] for name in self._strategies)})

    def names(self, packages: Iterable[str]) -> list[str]:
        """Return the dotted names of all functions of some packages that have a strategy."""
        wanted = set(packages)
        for package in wanted:
            self._load_group(package)
        return sorted(name for name in self._strategies if name.partition(".")[0] in wanted)

    def _load_group(self, package: str) -> None:
        group = self._groups.pop(package, None)
        if group is not None:
            # What somebody registered by hand stays.
            self._strategies = {**group(), **self._strategies}


@frozen
class Reference:
    """Something that a file names, imported when it is first called.

    Attributes:
        name: ``package.module:name``.
    """

    name: str
    _found: list[Any] = field(factory=list, eq=False, repr=False)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it.

        Raises:
            RegistrationError: It is not there.
        """
        if not self._found:
            module, _, attribute = self.name.partition(":")
            try:
                self._found.append(getattr(import_module(module), attribute))
            except (ImportError, AttributeError) as error:
                fix = "install it, or correct the file of strategies"
                raise RegistrationError(self.name, str(error), fix) from error
        return self._found[0](*args, **kwargs)


def _dotted(name: str) -> str:
    parts = name.replace(":", ".", 1).split(".")
    if len(parts) == 1 or not all(part.isidentifier() for part in parts):
        raise RegistrationError(name, "it names no function of a module", "write module.function")
    return ".".join(parts)


def _entries(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
        found = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise RegistrationError(str(path), str(error), "write a file of TOML or JSON") from error
    if not isinstance(found, dict):
        raise RegistrationError(str(path), "it has no tables", "write one for each function")
    return found


def _of_entry(name: str, entry: Any) -> MigrationStrategy:
    if not isinstance(entry, dict) or "backend" not in entry:
        raise RegistrationError(name, "its entry has no backend", 'write backend = "module:name"')
    for unknown in entry.keys() - _FIELDS:
        near = get_close_matches(unknown, sorted(_FIELDS), 1)
        fix = f"write {near[0]}" if near else f"it may have {', '.join(sorted(_FIELDS))}"
        raise RegistrationError(name, f"its entry has {unknown!r}", fix)
    how: dict[str, Any] = {"backend": _reference(name, entry["backend"])}
    if "inputs" in entry:
        how["input_processors"] = [_reference(name, each) for each in entry["inputs"]]
    if "named_inputs" in entry:
        own = entry["named_inputs"]
        how["named_processors"] = {key: _reference(name, value) for key, value in own.items()}
    if "arguments" in entry:
        how["arg_mapper"] = _reference(name, entry["arguments"])
    if "output" in entry:
        how["output_processor"] = _reference(name, entry["output"])
    return MigrationStrategy(**how)


def _reference(name: str, text: Any) -> Any:
    if text in _PROCESSORS:
        return getattr(processors, text)()
    module, colon, attribute = text.partition(":") if isinstance(text, str) else ("", "", "")
    if not (module and colon and attribute.isidentifier()):
        fix = f"write package.module:name, or one of {', '.join(_PROCESSORS)}"
        raise RegistrationError(name, f"its entry names {text!r}", fix)
    return Reference(text)
