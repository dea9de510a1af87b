"""The registry of kernels, and the decorator that fills it."""

from __future__ import annotations

import threading
import weakref
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from devicecore.errors import BrokenPackageError, MissingDependencyError, RegistrationError
from devicecore.fork import rearm_after_fork
from devicecore.kernels.kernel import Kernel

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from devicecore.kernels.exactness import Exactness


class KernelWatcher(Protocol):
    """Whoever keeps choices that a change of the registry makes stale."""

    def kernels_changed(self) -> None:
        """Forget all choices."""


_NEAR = 0.8  # how alike, from 0 to 1, the names of two operations are


class KernelRegistry:
    """Kernels by operation.

    Args:
        source: ``"module:function"``; called with an operation's prefix (the part before the first
            dot) when it is first asked for, it returns the modules that register its kernels.
    """

    def __init__(self, source: str | None = None) -> None:
        self._source = source
        self._kernels: dict[str, list[Kernel]] = {}
        self._loaded: dict[str, dict[str, str]] = {}
        self._fixes: dict[str, str] = {}
        self._lock = threading.RLock()
        self._watchers: weakref.WeakSet[KernelWatcher] = weakref.WeakSet()
        self.generation: int = 0
        rearm_after_fork(self)

    def register(self, kernel: Kernel) -> None:
        """Add *kernel*.

        Raises:
            RegistrationError: It names both or neither of device type and framework, or an equal
                one is there already.
        """
        if (kernel.device_type is None) == (kernel.framework is None):
            raise RegistrationError(
                kernel.op, "a kernel is for a device_type or for a framework, and not for both"
            )
        with self._lock:
            known = self._kernels.setdefault(kernel.op, [])
            # A module whose import was cut short, as by Ctrl-C, registers its kernels once more.
            known[:] = [other for other in known if not _is_of_earlier_import(other, kernel)]
            if any(_rivalry(other) == _rivalry(kernel) for other in known):
                raise RegistrationError(
                    kernel.title,
                    "there is one with the same priority, label and predicate",
                    "give it another priority or label, or unregister the other",
                )
            known.append(kernel)
            self._changed()

    def unregister(self, kernel: Kernel) -> None:
        """Take *kernel* out; calls in flight finish.

        Raises:
            RegistrationError: It is not registered.
        """
        with self._lock:
            try:
                self._kernels.get(kernel.op, []).remove(kernel)
            except ValueError:
                raise RegistrationError(kernel.title, "it is not registered") from None
            self._changed()

    def find(self, op: str) -> tuple[Kernel, ...]:
        """Return all kernels of *op*, importing the modules of its prefix on first use."""
        self._load(op)
        with self._lock:
            return tuple(self._kernels.get(op, ()))

    def operations(self) -> tuple[str, ...]:
        """Return the operations that have a kernel so far, sorted."""
        with self._lock:
            return tuple(sorted(op for op, kernels in self._kernels.items() if kernels))

    def load_failures(self, op: str) -> Mapping[str, str]:
        """Return, for each module of the prefix of *op* that failed to import, why."""
        return self._loaded.get(op.partition(".")[0], {})

    def load_fix(self, op: str) -> str:
        """Return what to do about a package that kept such a module out; empty if none is known."""
        return self._fixes.get(op.partition(".")[0], "")

    def fix(self, op: str) -> str:
        """Return what to do where nothing fits *op*: that of `load_fix`, or the name that is near.

        Operations of a prefix that nobody used yet are not looked through, but for another case.
        """
        if known := self.load_fix(op):
            return known
        meant = op.strip().casefold()
        if self.find(op):
            return ""
        self._load(meant)
        names = {name.casefold(): name for name in self.operations()}
        same_end = [each for each in names if each.rpartition(".")[2] == meant.rpartition(".")[2]]
        near = [*filter(meant.__eq__, names), *same_end[:1]]
        near = near or get_close_matches(meant, names, n=1, cutoff=_NEAR)
        return f"did you mean {names[near[0]]!r}?" if near else ""

    def watch(self, watcher: KernelWatcher) -> None:
        """Call ``watcher.kernels_changed()`` after every change; held weakly."""
        with self._lock:
            self._watchers.add(watcher)

    def after_fork(self) -> None:
        """Take a lock of its own in a forked child."""
        self._lock = threading.RLock()

    def _changed(self) -> None:
        self.generation += 1
        for watcher in list(self._watchers):
            watcher.kernels_changed()

    def _load(self, op: str) -> None:
        prefix = op.partition(".")[0]
        if self._source is None or prefix in self._loaded:
            return
        module, _, name = self._source.partition(":")
        failures = {}
        for kernel_module in getattr(import_module(module), name)(prefix):
            try:
                import_module(kernel_module)
            except KeyboardInterrupt:
                raise
            except (BrokenPackageError, MissingDependencyError) as error:
                failures[kernel_module] = error.why
                self._fixes[prefix] = error.fix
            except BaseException as error:  # noqa: BLE001 - it imports a framework
                failures[kernel_module] = f"{type(error).__name__}: {error}"
        self._loaded[prefix] = failures


def _is_of_earlier_import(known: Kernel, kernel: Kernel) -> bool:
    """Return whether *known* was made by a module that is now imported anew, with *kernel*."""
    before = getattr(known.function, "__globals__", {})
    now = getattr(kernel.function, "__globals__", {})
    return before is not now and before.get("__name__", 0) == now.get("__name__", 1)


def _rivalry(kernel: Kernel) -> tuple[Any, ...]:
    """Return what must differ between two kernels of one operation, so that one is chosen."""
    return (
        kernel.device_type,
        kernel.framework,
        kernel.label,
        kernel.priority,
        kernel.supports,
    )


_default = KernelRegistry(source="devicecore.discovery:kernel_modules")


def default_kernels() -> KernelRegistry:
    """Return the registry that `kernel` fills and devices use unless told otherwise."""
    return _default


def kernel(
    op: str,
    *,
    device_type: str | None = None,
    framework: str | None = None,
    priority: int = 0,
    label: str = "",
    pure: bool = True,
    supports: Callable[..., bool] | None = None,
    exactness: Exactness | Callable[..., Exactness] = "exact",
    thread_safe: bool = True,
    stateful: bool = False,
    reads_host: bool = False,
) -> Callable[[Callable[..., Any]], Kernel]:
    """Register the decorated function as a kernel; see `Kernel` for the arguments.

    Returns:
        A decorator that puts the `Kernel`, which is callable, in the function's place.

    Raises:
        RegistrationError: Both or neither of *device_type* and *framework* are given, or an equal
            kernel is registered already.

    Examples:
        >>> @kernel("example.double", device_type="CPU")
        ... def double(device, x):
        ...     return 2 * x
        >>> double.op
        'example.double'
        >>> default_kernels().unregister(double)
    """

    def register(function: Callable[..., Any]) -> Kernel:
        made = Kernel(
            op,
            function,
            device_type=device_type,
            framework=framework,
            priority=priority,
            label=label,
            pure=pure,
            supports=supports,
            exactness=exactness,
            thread_safe=thread_safe,
            stateful=stateful,
            reads_host=reads_host,
        )
        _default.register(made)
        return made

    return register
