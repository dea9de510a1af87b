"""The operation ``"onnx.run"``: a model by its name, on every device that ONNX Runtime reaches."""

from __future__ import annotations

import threading
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from devicecore.errors import ModelError
from devicecore.fork import rearm_after_fork
from devicecore.kernels import kernel
from devicecore.onnx.model import OnnxModel

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from devicecore.device import Device

_MOST_MODELS = 64


@kernel("onnx.run", framework="onnx", reads_host=True)
def run(device: Device, model: Any, inputs: Mapping[str, Any], **options: Any) -> dict[str, Any]:
    """Run *model* on *device*; use ``device.compute("onnx.run", model, inputs)``.

    Args:
        device: A device with a provider of ONNX Runtime.
        model: An `OnnxModel`, or the file or the bytes of one. A file that changed is read anew.
        inputs: An array for each input; see `OnnxModel`.
        options: Those of `OnnxModel`, where *model* is none yet.

    Raises:
        TypeError: *model* is none of these, or there is no such option.
    """
    if isinstance(model, OnnxModel):
        if options:
            msg = f"{', '.join(options)}: an OnnxModel has its options already"
            raise TypeError(msg)
        return model(device, inputs)
    return _MODELS.of(model, options)(device, inputs)


class _Models:
    """The models that were named last, so that their digests are computed once."""

    def __init__(self) -> None:
        self._models: OrderedDict[Hashable, OnnxModel] = OrderedDict()
        self._lock = threading.Lock()
        rearm_after_fork(self)

    def of(self, source: Any, options: dict[str, Any]) -> OnnxModel:
        key = _key(source, options)
        with self._lock:
            if (known := self._models.get(key)) is not None:
                self._models.move_to_end(key)
                return known
        made = OnnxModel(source, **options)
        with self._lock:
            self._models[key] = made
            if len(self._models) > _MOST_MODELS:
                self._models.popitem(last=False)
        return made

    def after_fork(self) -> None:
        """Take a lock of its own in a forked child."""
        self._lock = threading.Lock()


def _key(source: Any, options: dict[str, Any]) -> Hashable:
    """Return what tells a model from others: a file by its last change as well."""
    told = tuple((name, repr(value)) for name, value in sorted(options.items()))
    if isinstance(source, str | Path):
        try:
            facts = Path(source).stat()
        except (OSError, ValueError) as error:
            raise ModelError(str(source), "there is no such file") from error
        return str(Path(source).absolute()), facts.st_size, facts.st_mtime_ns, told
    return bytes(source) if isinstance(source, bytes | bytearray | memoryview) else id(source), told


_MODELS = _Models()
