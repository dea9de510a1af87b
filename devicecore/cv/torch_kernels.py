"""Registers the catalogue's kernels; each imports torch on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from devicecore.cv import catalog, results
from devicecore.kernels import Kernel, default_kernels

if TYPE_CHECKING:
    from devicecore.cv.operation import Operation


def kernel_for(name: str, label: str, device_type: str | None, *, needs_label: bool) -> Kernel:
    """Return a kernel of one of OpenCV's functions.

    Args:
        name: OpenCV's name of it.
        label: Which of the operations.
        device_type: The devices that it runs on; None for all that torch can use.
        needs_label: Whether it is taken only where its label is asked for.
    """

    def operation() -> Operation:
        own = catalog.find(name, label)
        assert own is not None  # it is in the catalogue
        return own

    def run(device: Any, /, *args: Any, **kwargs: Any) -> Any:
        own = operation()
        place = own.destination(args, kwargs)
        return results.write_into(place, own.run(device, *args, **kwargs))

    def supports(device: Any, /, *args: Any, **kwargs: Any) -> bool:
        return operation().supports(device, *args, **kwargs)

    def why_not(device: Any, /, *args: Any, **kwargs: Any) -> str:
        return operation().why_not_on(device, *args, **kwargs)

    def exactness(device: Any, /, *args: Any, **kwargs: Any) -> Any:
        return operation().exactness(device, *args, **kwargs)

    return Kernel(
        f"cv2.{name}",
        run,
        device_type=device_type,
        framework="torch" if device_type is None else None,
        label=label if needs_label else "",
        supports=supports,
        exactness=exactness,
        why_not=why_not,
    )


def _register() -> None:
    places: list[tuple[str, str, str | None]] = [(name, "torch", None) for name in catalog.TORCH]
    places += [
        (name, "triton", device_type)
        for name in catalog.TRITON
        for device_type in sorted(catalog.TRITON_TYPES)
    ]
    places += [(name, "kornia", None) for name in catalog.KORNIA]
    for name, label, device_type in places:
        for needs_label in (True,) if label == "kornia" else (False, True):
            made = kernel_for(name, label, device_type, needs_label=needs_label)
            default_kernels().register(made)


_register()
