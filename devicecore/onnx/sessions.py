"""A model on one device: its session, and a binding for each signature that it is called with."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from devicecore.errors import ModelError
from devicecore.fork import rearm_after_fork
from devicecore.onnx.arrays import call_key
from devicecore.onnx.binding import bound_call
from devicecore.onnx.inputs import check_inputs
from devicecore.onnx.ports import input_ports, output_ports
from devicecore.onnx.strings import with_texts
from devicecore.onnx.unbound_run import has_no_address, run_unbound
from devicecore.ort.build_notice import build_notice
from devicecore.ort.io_binding import memory_of
from devicecore.ort.provider_options import builds_slowly

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping
    from contextlib import AbstractContextManager

    from devicecore.onnx.binding import Call
    from devicecore.onnx.ports import Port
    from devicecore.onnx.session_stream import SessionStream
    from devicecore.ort import OpenedSession

# Models that see a new shape at each call keep no more bindings than this.
_MOST_SIGNATURES = 32


class LoadedModel:
    """A model on one device.

    Args:
        name: The model's name, for messages.
        session: Its session.
        stream: The stream of torch that the session computes on; None for another one.
    """

    def __init__(
        self, name: str, session: OpenedSession, stream: SessionStream | None = None
    ) -> None:
        self._name = name
        self.session = session
        self._stream = stream
        self.usable: bool = True
        # The bindings that no call is using, by signature: the names and kinds of its arrays.
        self.idle: dict[Hashable, list[Call]] = {}
        # The shapes of outputs that are fixed, once a run has confirmed them: some models declare
        # what they do not keep.
        self._shapes: dict[Hashable, dict[str, tuple[int, ...]]] = {}
        self._memory = memory_of(session.spec)
        self._inputs = {port.name: port for port in input_ports(session.session)}
        self._outputs = output_ports(session.session)
        # An output that is an input as well is written into no memory of ours.
        self._bindable = all(
            port.element and port.name not in self._inputs for port in self._outputs
        )
        self._lock = threading.Lock()
        rearm_after_fork(self)

    def run(self, feeds: Mapping[str, Any], copied: Callable[[], None]) -> dict[str, Any]:
        """Check *feeds* and run on them with a new binding, which later calls find in `idle`.

        Args:
            feeds: An array for each input.
            copied: Called for each array that has to be copied since it cannot be read as it lies.

        Raises:
            ModelError: *feeds* do not fit, or the model cannot take their values.
            NotLiveError: The provider failed.
            OutOfMemoryError: The device has too little memory.
        """
        described = check_inputs(self._name, self._inputs, feeds, self._memory)
        inputs = [self._inputs[name] for name in feeds]
        # Texts, sequences, maps and what has a default cannot be bound.
        can_bind = self._bindable and len(described) == len(feeds)
        if (
            not can_bind
            or not all(port.required for port in inputs)
            or has_no_address(inputs, described, self.session.spec)
        ):
            given = with_texts(self._name, self._inputs, feeds)
            return run_unbound(self.session, given, described)
        values = [*feeds.values()]
        key = call_key(feeds, values)
        shapes = self._shapes.get(key)

        def bound_run(shapes: Mapping[str, tuple[int, ...]]) -> tuple[Call, dict[str, Any]]:
            call = bound_call(
                self.session, inputs, described, self._outputs, shapes, stream=self._stream
            )
            with self._notice():  # a shape that is new to TensorRT may take minutes
                return call, call(values, copied)

        try:
            call, outputs = bound_run(shapes or {})
        except ModelError:
            if not shapes:
                raise
            # Some models give other shapes than those that they declare, if only now and then.
            call, outputs = bound_run({})
            with self._lock:
                self.idle[key], self._shapes[key] = [], {}
        self.session.count_nodes()
        if shapes is None:
            shapes = _kept_shapes(self._outputs, outputs)
            with self._lock:
                self._remember(key, shapes)
            if shapes:  # the next binding is the one to keep: it has room for these
                return outputs
        with self._lock:
            if key in self.idle:
                self.idle[key].append(call)
        return outputs

    def _notice(self) -> AbstractContextManager[None]:
        provider = self.session.spec.provider
        if builds_slowly(provider):
            return build_notice(provider, self._name, at_once=False)
        return nullcontext()

    def close(self) -> None:
        """Let go of the session; the device is closed, or has dropped it."""
        self.usable = False
        with self._lock:
            self.idle.clear()

    def after_fork(self) -> None:
        """Do not use the parent's session in a forked child: its threads are not there."""
        self.usable = False
        self._lock = threading.Lock()
        self._inherited = dict(self.idle)  # not to be destroyed in the child either
        self.idle.clear()

    def _remember(self, key: Hashable, shapes: dict[str, tuple[int, ...]]) -> None:
        if not self.usable:
            return
        if len(self.idle) >= _MOST_SIGNATURES:
            oldest = next(iter(self.idle))
            del self.idle[oldest], self._shapes[oldest]
        self.idle[key], self._shapes[key] = [], shapes


def _kept_shapes(ports: Iterable[Port], outputs: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Return the shapes that the model declares as fixed and that *outputs* have."""
    declared = {port.name: port.fixed_shape for port in ports}
    return {
        name: shape
        for name, shape in declared.items()
        # An `OrtValue` is allocated by ONNX Runtime in any case, and its shape is a method.
        if shape is not None and outputs[name].shape == shape
    }
