"""A stream of torch that a session computes on, so that the GPU keeps the order and nobody waits.

Without one, ONNX Runtime computes on a stream that torch does not know: the host then has to wait
for torch before each run, and for the run before torch goes on.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from devicecore.frameworks import loaded
from devicecore.ort.io_binding import memory_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from devicecore.device import Device

_OPTION = "user_compute_stream"


class SessionStream:
    """A stream for one session.

    Args:
        gpu: Torch's name of the GPU, such as ``"cuda:0"``.
    """

    def __init__(self, gpu: str) -> None:
        self._torch = sys.modules["torch"]
        self._stream = self._torch.cuda.Stream(gpu)
        self.options: Mapping[str, str] = {_OPTION: str(self._stream.cuda_stream)}

    def in_order(self, run: Callable[[], object]) -> Callable[[], None]:
        """Return *run* in order with the caller's current stream: after what it holds by then.

        Args:
            run: Queues something on this stream; called by one thread at a time.
        """
        cuda, mine = self._torch.cuda, self._stream
        index = mine.device_index
        # Torch's own `current_stream` makes a new object each time, which a small model would feel.
        current = self._torch._C._cuda_getCurrentRawStream  # noqa: SLF001 - see above
        known: dict[int, Any] = {}
        before, after = cuda.Event(), cuda.Event()

        def run_in_order() -> None:
            number = current(index)
            theirs = known.get(number)
            if theirs is None:
                theirs = known[number] = cuda.current_stream(index)
            before.record(theirs)
            before.wait(mine)
            run()
            after.record(mine)
            after.wait(theirs)

        return run_in_order


def stream_for(device: Device, options: Mapping[str, str]) -> SessionStream | None:
    """Return a stream for a session on *device*, or None where torch does not share its GPU.

    Args:
        device: The device.
        options: The provider's options that the program gives, which may name a stream of its own.
    """
    spec, torch = device.session, loaded("torch")
    if spec is None or spec.provider != "CUDAExecutionProvider" or spec.is_plugin:
        return None
    if torch is None or _OPTION in options:
        return None
    if device.torch_device is None and not torch.cuda.is_initialized():
        return None
    return SessionStream(memory_of(spec))
