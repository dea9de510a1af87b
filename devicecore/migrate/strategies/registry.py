"""`StrategyRegistry`: finds the strategy of a function."""

from __future__ import annotations

import json
import tomllib
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from attrs import field, frozen

from devicecore.errors import RegistrationError
from devicecore.kernels.exactness import PROMISES
from devicecore.migrate.calls import processors
from devicecore.migrate.calls.strategy import MigrationStrategy

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from devicecore.kernels import Exactness
    from devicecore.migrate.calls.strategy import Strategy

    Group = Callable[[], Mapping[str, Strategy]]

# What files may call processors, besides ``package.module:name``.
_PROCESSORS = ("EnsureTensor", "KeepOnDevice", "PassThrough", "SwapArgs", "ToNumpy")
_FIELDS = frozenset({"backend", "inputs", "named_inputs", "arguments", "output", "promise"})


class StrategyRegistry:
    """The strategies, by the names of the functions that they are for.

    A name is dotted, ``scipy.signal.resample``, or has a colon after the module.
    """

    def __init__(self) -> None:
        self._strategies: dict[str, Strategy] = {}
        self._groups: dict[str, Group] = {}
        self._named_only: set[str] = set()
        self._below: dict[str, tuple[str, ...]] = {}

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
        if not isinstance(getattr(strategy, "runs_original", None), bool):
            reason = f"{strategy!r} does not say whether it runs_original"
            raise RegistrationError(name, reason, "set runs_original = False if it does not")
        self._strategies[_dotted(name)] = strategy
        return strategy

    def _decorate(self, name: str, how: Mapping[str, Any], backend: Any) -> Any:
        self.register(name, MigrationStrategy(backend=backend, **how))
        return backend

    def register_group(
        self, package: str, group: Group, *, in_frames: bool = True, modules: Iterable[str] = ()
    ) -> None:
        """Ask *group* for the strategies of a package's functions once they are needed.

        Args:
            package: The name of the package that a program imports, such as ``"cv2"``.
            group: Returns the strategies by names. Called once, or by several threads at once:
                each of them imports what it needs, and none may wait for another one meanwhile.
            in_frames: Whether calls inside of a frame that a plan names are meant, too. Without
                that only those are computed whose own function the plan names.
            modules: Modules below the package that have functions, and may be imported after it.
        """
        self._groups[package] = group
        (self._named_only.discard if in_frames else self._named_only.add)(package)
        self._below[package] = tuple(modules)

    def load(self, path: str | os.PathLike[str]) -> None:
        """Register what a file of TOML or JSON says; nothing that it names is imported now.

        Each entry is a table with the function's name, in quotes or not. It has a ``backend``, and
        perhaps ``inputs``, ``named_inputs``, ``arguments`` (an `ArgMapper`) and ``output``; each is
        ``package.module:name``, or the name of a processor of devicecore. Its ``promise`` is a
        class of exactness.

        Raises:
            RegistrationError: The file, or an entry of it, is not as it should be; nothing of it is
                registered then.
        """
        found = {name: _of_entry(name, entry) for name, entry in _entries(Path(path)).items()}
        self._strategies |= {_dotted(name): strategy for name, strategy in found.items()}

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
        return frozenset(
            {*self._groups, *(name.partition(".")[0] for name in list(self._strategies))}
        )

    @property
    def packages_in_frames(self) -> frozenset[str]:
        """Those of them whose functions are meant by a plan that names a frame around the calls."""
        return self.packages - self._named_only

    @property
    def modules_in_frames(self) -> frozenset[str]:
        """Those packages, and the modules below them that functions may be in."""
        packages = self.packages_in_frames
        return packages.union(*(self._below.get(package, ()) for package in packages))

    def names(self, packages: Iterable[str]) -> list[str]:
        """Return the dotted names of all functions of some packages that have a strategy."""
        wanted = set(packages)
        for package in wanted:
            self._load_group(package)
        return sorted(name for name in list(self._strategies) if name.partition(".")[0] in wanted)

    def _load_group(self, package: str) -> None:
        group = self._groups.get(package)
        if group is not None:
            for name, strategy in group().items():
                self._strategies.setdefault(name, strategy)  # what was registered by hand stays
            self._groups.pop(package, None)


@frozen
class LateImport:
    """A function that a file names, imported when it is first called.

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
    return dict(_flat(found, ""))


def _flat(tables: dict[str, Any], before: str) -> Iterator[tuple[str, Any]]:
    """Yield the entries with their names: without quotes, TOML makes tables in tables of those."""
    for key, value in tables.items():
        name = f"{before}.{key}" if before else key
        if isinstance(value, dict) and value and not value.keys() & _FIELDS:
            yield from _flat(value, name)
        else:
            yield name, value


def _of_entry(name: str, entry: Any) -> MigrationStrategy:
    if not isinstance(entry, dict) or "backend" not in entry:
        raise RegistrationError(name, "its entry has no backend", 'write backend = "module:name"')
    for unknown in entry.keys() - _FIELDS:
        near = get_close_matches(unknown, sorted(_FIELDS), 1)
        fix = f"write {near[0]}" if near else f"it may have {', '.join(sorted(_FIELDS))}"
        raise RegistrationError(name, f"its entry has {unknown!r}", fix)
    how: dict[str, Any] = {"backend": _reference(name, entry["backend"])}
    inputs = _of_kind(list, name, entry, "inputs")
    own = _of_kind(dict, name, entry, "named_inputs")
    how["input_processors"] = [_reference(name, each) for each in inputs]
    how["named_processors"] = {key: _reference(name, each) for key, each in own.items()}
    if "arguments" in entry:
        how["arg_mapper"] = _reference(name, entry["arguments"])
    if "output" in entry:
        how["output_processor"] = _reference(name, entry["output"])
    if "promise" in entry:
        how["promise"] = _promise(name, entry["promise"])
    return MigrationStrategy(**how)


def _of_kind(kind: type, name: str, entry: dict[str, Any], part: str) -> Any:
    value = entry.get(part, kind())
    if not isinstance(value, kind):
        what = "list" if kind is list else "table"
        raise RegistrationError(name, f"its {part} are {value!r}", f"write a {what} of names")
    return value


def _promise(name: str, text: Any) -> Exactness:
    if text not in PROMISES:
        fix = f"write one of {', '.join(PROMISES)}"
        raise RegistrationError(name, f"its promise is {text!r}", fix)
    return cast("Exactness", text)


def _reference(name: str, text: Any) -> Any:
    if text in _PROCESSORS:
        return getattr(processors, text)()
    module, colon, attribute = text.partition(":") if isinstance(text, str) else ("", "", "")
    if not (module and colon and attribute.isidentifier()):
        fix = f"write package.module:name, or one of {', '.join(_PROCESSORS)}"
        raise RegistrationError(name, f"its entry names {text!r}", fix)
    return LateImport(text)
