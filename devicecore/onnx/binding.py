"""A model's arrays, bound once for each signature of its inputs and used again by later calls."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from devicecore.frameworks import loaded
from devicecore.onnx.input_binding import feed
from devicecore.onnx.output_arrays import result
from devicecore.ort.io_binding import HOST, bound_run, new_binding, takes_host_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from devicecore.onnx.arrays import Described, Kind
    from devicecore.onnx.input_binding import Feed
    from devicecore.onnx.output_arrays import BoundOutput
    from devicecore.onnx.ports import Port
    from devicecore.onnx.session_stream import SessionStream
    from devicecore.ort import OpenedSession

    Call = Callable[[Sequence[Any], Callable[[], None]], dict[str, Any]]


def bound_call(
    opened: OpenedSession,
    inputs: Sequence[Port],
    described: Mapping[str, Described],
    outputs: Sequence[Port],
    shapes: Mapping[str, tuple[int, ...]],
    *,
    stream: SessionStream | None,
) -> Call:
    """Bind *opened* anew, for inputs of one signature; what this gives serves one call at a time.

    Outputs are of the kind of the inputs: of torch if one of these is, else of ONNX Runtime if one
    is, else of numpy. They lie on the GPU if an input does, and on the host otherwise.

    Args:
        opened: The session.
        inputs: The inputs that are given.
        described: What is known of them.
        outputs: The outputs.
        shapes: The shapes of those outputs that always have the same one.
        stream: The stream of torch that the session computes on; None for another one.

    Returns:
        The function to call with the values of the inputs, and a function to be called for each of
        them that has to be copied since it cannot be read as it lies. It gives the outputs.
    """
    kinds = {found.kind for found in described.values()}
    gpus = [found.memory for found in described.values() if found.memory.startswith("cuda")]
    # A binding keeps ONNX Runtime's own values; they may be large and are not ours to keep.
    clears = "ort" in kinds
    gather = takes_host_memory(opened.spec) and not clears
    native = new_binding(opened.session)
    feeds = [
        feed(native, port, described[port.name], gather=gather, keeps=not clears) for port in inputs
    ]
    kind: Kind = "torch" if "torch" in kinds else "ort" if "ort" in kinds else "numpy"
    results = {
        port.name: result(
            native,
            port,
            index,
            kind=kind,
            memory=gpus[0] if gpus else HOST,
            shape=shapes.get(port.name),
        )
        for index, port in enumerate(outputs)
    }
    writes = [each.write for each in feeds if each.write]
    if len(writes) == len(feeds) and not any(had.make_room for had in results.values()):
        return _short(opened, native, writes, results)
    # Whoever reads a value of ONNX Runtime, or memory of the host, knows of no stream.
    can_queue = kinds == {"torch"} and len(gpus) == len(described)
    run = _run(opened, native, gpus, stream if can_queue else None)
    return _full(opened, native, feeds, results, run, clears=clears)


def _short(
    opened: OpenedSession,
    native: Any,
    writes: Sequence[Callable[[Any], object]],
    results: Mapping[str, BoundOutput],
) -> Call:
    """Return a call for small arrays, where each step of `_full` would be felt."""
    run, options, error_of = bound_run(opened.session), opened.run_options, opened.run_error
    takes = [(name, had.take) for name, had in results.items()]
    if len(writes) == len(takes) == 1:  # as most small models are: without a loop
        (only_write,), ((only_name, only_take),) = writes, takes

        def short_call(values: Sequence[Any], _copied: Callable[[], None]) -> dict[str, Any]:
            try:
                only_write(values[0])
                run(native, options)
                return {only_name: only_take()}
            except Exception as error:  # its errors share no other base
                raise error_of(error) from error

        return short_call

    def call(values: Sequence[Any], _copied: Callable[[], None]) -> dict[str, Any]:
        try:
            for write, value in zip(writes, values):  # noqa: B905 - one for each, by the signature
                write(value)
            run(native, options)
            outputs = {}
            for name, take in takes:
                outputs[name] = take()
        except Exception as error:  # its errors share no other base
            raise error_of(error) from error
        return outputs

    return call


def _full(
    opened: OpenedSession,
    native: Any,
    feeds: Sequence[Feed],
    results: Mapping[str, BoundOutput],
    run: Callable[[], None],
    *,
    clears: bool,
) -> Call:
    error_of = opened.run_error
    binds = [each.bind for each in feeds]
    rooms = [had.make_room for had in results.values() if had.make_room]
    takes = [(name, had.take) for name, had in results.items()]

    def call(values: Sequence[Any], copied: Callable[[], None]) -> dict[str, Any]:
        try:
            # The binding knows addresses only: what it reads has to live until the run is over.
            held = [bind(value, copied) for bind, value in zip(binds, values, strict=True)]
            for make_room in rooms:
                make_room()
            run()
            del held
            outputs = {name: take() for name, take in takes}
        except Exception as error:  # its errors share no other base
            raise error_of(error) from error
        if clears:
            native.clear_binding_inputs()
        return outputs

    return call


def _run(
    opened: OpenedSession, native: Any, gpus: Sequence[str], stream: SessionStream | None
) -> Callable[[], None]:
    """Return what runs *native* in order with what torch has queued on its current stream.

    With a *stream* the run itself is only queued; ONNX Runtime is done when it returns otherwise.
    """
    run = bound_run(opened.session)
    if stream is not None:
        return stream.in_order(partial(run, native, opened.queued_run_options))
    run_now = partial(run, native, opened.run_options)
    return partial(_wait_and_run, gpus[0], run_now) if gpus else run_now


def _wait_and_run(gpu: str, run: Callable[[], None]) -> None:
    torch = loaded("torch")
    if torch is not None:
        torch.cuda.current_stream(gpu).synchronize()
    run()
