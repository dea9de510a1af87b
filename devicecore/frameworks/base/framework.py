"""`Framework`: what devicecore knows of one array library, and needs of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from devicecore.frameworks.base.dlpack import tensor_from_dlpack

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from devicecore.frameworks.base.adapter import Adapter
    from devicecore.frameworks.base.leaf import LeafKind
    from devicecore.names import DeviceName


class Framework:
    """An array library: its arrays, its devices, and its default device.

    One without overrides stands for any library whose arrays have ``__dlpack__`` or ``__array__``.

    Attributes:
        module: Its module, such as ``"jax"``.
        words: What else people call it, folded.
        marker: A module that it brings whenever it is imported, and that no program has by chance.
        array: The name of the class of its arrays in its module.
        uses: Attributes that its adapters need: a program's own module of that name has not all.
        leaf: How a transfer moves its arrays; None where `devicecore.transfer` has its own way.
    """

    module: ClassVar[str] = ""
    words: ClassVar[tuple[str, ...]] = ()
    marker: ClassVar[str] = ""
    array: ClassVar[str] = ""
    uses: ClassVar[tuple[str, ...]] = ()
    leaf: ClassVar[LeafKind | None] = None

    def adapters(self, module: ModuleType) -> Sequence[Adapter]:
        """Return what sets its default device, none where it has none.

        Args:
            module: The framework's own module.
        """
        del module
        return ()

    def name_of_device(self, device: Any, kind: str) -> str | DeviceName | None:
        """Return the name of the device that one of its objects means, None for other objects.

        Args:
            device: An object whose class the framework defines.
            kind: The name of that class.

        Returns:
            A text, where registered types may still have their say in it, or a name.

        Raises:
            InvalidDeviceNameError: It is the place of no device.
        """
        del device, kind
        return None

    def to_torch(self, torch: Any, array: Any) -> Any:
        """Return one of its arrays, or numbers in lists, as a tensor of torch where it is.

        Raises:
            TransferError: torch has no such elements.
        """
        if hasattr(array, "__dlpack__"):
            return tensor_from_dlpack(array)
        return torch.as_tensor(array, device="cpu")

    def to_numpy(self, numpy: Any, array: Any) -> Any:
        """Return one of its arrays, or numbers in lists, as an array of numpy on the host.

        Raises:
            TransferError: numpy has no such elements.
        """
        if hasattr(array, "numpy"):
            return numpy.asarray(array.numpy())
        if hasattr(array, "__dlpack__") and not hasattr(array, "__array__"):
            return numpy.from_dlpack(array)
        return numpy.asarray(array)
