"""OpenCV's functions, by the kernels of `devicecore.cv`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import field, frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from devicecore.device import Device
    from devicecore.migrate.plan import Options
    from devicecore.migrate.strategy import Strategy


@frozen
class VisionStrategy:
    """Computes one of OpenCV's functions by whichever kernel promises enough.

    Attributes:
        name: OpenCV's name of the function.
    """

    name: str
    runs_original: bool = field(init=False, default=False)

    def compute(
        self,
        device: Device,
        options: Options,
        original: Callable[..., Any],  # noqa: ARG002 - it is known by its name
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Return OpenCV's result, computed on *device*.

        Raises:
            NoKernelError: No kernel promises as much as the plan asks for.
        """
        from devicecore.cv.calling import computed
        from devicecore.cv.policy import Policy

        policy = Policy(label=options.kernel, accepted=options.accept, is_strict=True)
        return computed(device, policy, self.name, args, kwargs)


def strategies() -> Mapping[str, Strategy]:
    """Return one for each of OpenCV's functions that has a kernel."""
    from devicecore.cv import catalog, native  # noqa: F401 - it takes OpenCV's own, before others

    # Methods of OpenCV's objects are no functions of its module.
    names = [name for name in catalog.TORCH if "_apply" not in name]
    return {f"cv2.{name}": VisionStrategy(name) for name in names}
