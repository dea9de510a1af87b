"""`OnnxModel`: a model that any device with a provider of ONNX Runtime can run."""

from __future__ import annotations

import threading
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import ref

from devicecore.errors import ModelError, NotLiveError, UnknownResourceError
from devicecore.ledger import default_ledger
from devicecore.names import PROVIDER_TYPES
from devicecore.onnx.arguments import (
    checked_libraries,
    checked_options,
    checked_policy,
    checked_precision,
    checked_session_options,
    checked_share,
    checked_source,
    checked_threads,
)
from devicecore.onnx.arrays import call_key, signature
from devicecore.onnx.free_dimensions import check_free_dimensions
from devicecore.onnx.model_signature import declared
from devicecore.onnx.session_stream import stream_for
from devicecore.onnx.sessions import LoadedModel
from devicecore.ort import open_session
from devicecore.ort.model_digest import model_digest
from devicecore.ort.model_file import described
from devicecore.ort.session_attributes import is_free_dimension
from devicecore.runtime import default_runtime

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from devicecore.device import Device
    from devicecore.names import DeviceName
    from devicecore.onnx.binding import Call
    from devicecore.onnx.model_signature import Declared, ValueInfo
    from devicecore.ort import CachePolicy, OpenedSession, Precision, SessionSpec

_CONTAINER = "onnx"


class OnnxModel:
    """A model, to be run as a kernel: ``device.compute(model, {"x": array})``.

    Each device opens its own session when the model first runs there, and keeps it. The model
    itself holds none, so it pickles and may be used by many devices, threads and processes.

    Args:
        model: The file, or its bytes.
        precision: ``"f32"`` computes in float32 on every device; ``"default"`` leaves it to the
            provider, and some then take bf16.
        min_nodes: The share of the model's nodes, above 0 and up to 1, that the device itself must
            run; None takes any but none at all. What is left runs on the CPU and is in the ledger.
        threads: Threads of a session; None for as many CPUs as affinity and the cgroup's quota
            leave. Where that is fewer than the machine has, idle threads sleep instead of spinning.
        provider_options: Further options by the name of the provider, such as
            ``{"CUDAExecutionProvider": {"gpu_mem_limit": 2_000_000_000}}``; each device takes
            those of its own.
        session_options: Further configuration entries of the sessions, such as
            ``{"session.disable_prepacking": "1"}``, attributes of ONNX Runtime's
            ``SessionOptions``, such as ``{"graph_optimization_level": "basic"}``, and sizes of free
            dimensions, ``{"free_dimension_override_by_name": {"batch": 1}}``. With
            ``log_severity_level`` ONNX Runtime prints its messages.
        custom_op_libraries: The libraries of operators that ONNX Runtime lacks.
        cache: Which engines are kept for the next process, in a folder for each model, provider,
            version, device, precision and set of options: ``"engines"`` those that providers
            compile, ``"all"`` also what ONNX Runtime optimises for the CPU, ``"none"`` none.

    Raises:
        TypeError: *model* is neither a path nor bytes; *custom_op_libraries* is no list of paths;
            options are no mapping, or have names that are no texts or values that cannot be one.
        ValueError: An argument is not one of these; a provider is not known.
    """

    # What `DeviceMgr.compute` asks of a kernel: a model may be tried elsewhere, and its provider
    # fetches the arrays from the host by itself.
    pure = True
    reads_host = True

    def __init__(
        self,
        model: bytes | bytearray | memoryview | str | Path,
        *,
        precision: Precision = "f32",
        min_nodes: float | None = None,
        threads: int | None = None,
        provider_options: Mapping[str, Mapping[str, object]] | None = None,
        session_options: Mapping[str, object] | None = None,
        custom_op_libraries: Iterable[str | Path] = (),
        cache: CachePolicy = "engines",
    ) -> None:
        self.model: bytes | Path = checked_source(model)
        self.precision: Precision = checked_precision(precision)
        self.min_nodes: float | None = checked_share(min_nodes)
        self.threads: int | None = checked_threads(threads)
        self.provider_options: dict[str, dict[str, str]] = checked_options(provider_options)
        self.session_options: dict[str, str] = checked_session_options(session_options)
        self.custom_op_libraries: tuple[str, ...] = checked_libraries(custom_op_libraries)
        self.cache: CachePolicy = checked_policy(cache)
        self._start()

    def _start(self) -> None:
        self._copies = 0
        self._lock = threading.Lock()
        # A quick way to what the devices hold, see `LoadedModel.idle`.
        self._idle: dict[ref[Device], dict[Hashable, list[Call]]] = {}
        # What the devices know its sessions by.
        self._keys: dict[ref[Device], Hashable] = {}

    @property
    def name(self) -> str:
        """The file's name, or a few words for bytes."""
        return self.model.name if isinstance(self.model, Path) else described(self.model)

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the model and of its weights in other files; read once.

        Raises:
            ModelError: The file cannot be read or is plainly no model.
        """
        return model_digest(self.model)

    @property
    def inputs(self) -> tuple[ValueInfo, ...]:
        """Name, dtype and shape of its inputs, those with a default value last; opens no session.

        Raises:
            ModelError: The file cannot be read or is no model.

        Examples:
            >>> from devicecore.ort.tiny_model import tiny_model
            >>> [(each.name, each.dtype, each.shape) for each in OnnxModel(tiny_model()).inputs]
            [('x', 'float32', (2, 4))]
        """
        return self._declared.inputs

    @property
    def outputs(self) -> tuple[ValueInfo, ...]:
        """Name, dtype and shape of its outputs, as the model declares them; opens no session.

        Raises:
            ModelError: The file cannot be read or is no model.
        """
        return self._declared.outputs

    @cached_property
    def _declared(self) -> Declared:
        return declared(self.model)

    @property
    def copies(self) -> int:
        """How many arrays had to be copied in this process, as they could not be read as they lay.

        Those that are not contiguous, or not aligned. Arrays of up to 16 KiB do not count: writing
        them into a buffer costs less than telling ONNX Runtime where they are.
        """
        return self._copies

    def __call__(self, device: Device, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """Run the model on *device*; use ``device.compute(model, feeds)``.

        Args:
            device: A device with a provider of ONNX Runtime.
            feeds: An array for each input, of its dtype and rank: of numpy, of torch or an
                ``OrtValue``. Texts are ``str``, or bytes in UTF-8. What numpy lacks, such as
                bfloat16, is an array of ml_dtypes. Tensors of torch lie on the host, or on the GPU
                that the provider computes on; gradients do not pass.

        Returns:
            An array for each output, in the model's order; a later call does not change it. It is a
            tensor of torch if an input is one, else an ``OrtValue`` if one is, else numpy's, and
            lies on the GPU if an input does. Texts and sequences are what ONNX Runtime gives. What
            numpy lacks is an array of ml_dtypes where that is installed, or an ``OrtValue``.

        Raises:
            ModelError: The model is at fault, or *feeds* do not fit its inputs.
            NotLiveError: The device has no provider, or it does not work.
            OutOfMemoryError: The device has too little memory.
            EngineCacheError: The folder for engines cannot be used; see *cache*.
            MissingDependencyError: ONNX Runtime is not installed.
        """
        try:
            values = [*feeds.values()]
            try:  # as `call_key`, without its call: that would be felt with a small model
                key: tuple[Hashable, ...] = (*feeds, *map(signature, values))
            except AttributeError:
                key = call_key(feeds, values)
            idle = self._idle[ref(device)][key]
            call = idle.pop()
        except (AttributeError, KeyError, IndexError):
            return self._on(device).run(feeds, self._count_copy)
        try:
            outputs = call(values, self._count_copy)
        except ModelError:  # its room may be of another shape than the outputs are this time
            return self._on(device).run(feeds, self._count_copy)
        idle.append(call)  # not after an error: nobody knows what that left bound
        return outputs

    def why_not_on(self, device: Device) -> str:
        """Return why *device* cannot run models, or an empty string."""
        return "" if device.session else "ONNX Runtime has no provider for it"

    def session(self, device: str | DeviceName | Device | Any) -> OpenedSession:
        """Return the session that runs this model on *device*, opened if it is not yet.

        Args:
            device: The device, its name, or what else `device_scope` takes.

        Raises:
            InvalidDeviceNameError: *device* is not a device name.
            UnknownDeviceError: There is no such device.
            ModelError: The model is at fault.
            NotLiveError: The device has no provider, or it does not work.
            OutOfMemoryError: The device has too little memory.
            EngineCacheError: The folder for engines cannot be used; see *cache*.
            MissingDependencyError: ONNX Runtime is not installed.
        """
        return self._on(default_runtime().device(device, "onnx")).session

    def close(self) -> None:
        """Let go of its sessions in this process; the next call opens one again.

        A device keeps a session until then, or until it is closed, since another `OnnxModel` of the
        same file and options shares it.
        """
        for place, key in list(self._keys.items()):
            device = place()
            if device is not None:
                with suppress(UnknownResourceError):
                    device.resource_mgr.delete(_CONTAINER, key)
        self._idle.clear()
        self._keys.clear()

    def _on(self, device: Device) -> LoadedModel:
        options = self._options_for(device.session)
        key = (
            *(self.digest, self.precision, self.min_nodes, self.threads, device.session),
            tuple(sorted(options.items())),
            tuple(sorted(self.session_options.items())),
            self.custom_op_libraries,
        )
        loaded = device.resource_mgr.lookup_or_create(_CONTAINER, key, lambda: self._load(device))
        idle, keys = self._idle, self._keys

        def forget(gone: ref[Device]) -> None:
            idle.pop(gone, None)
            keys.pop(gone, None)

        place = ref(device, forget)
        idle[place], keys[place] = loaded.idle, key
        return loaded

    def _options_for(self, spec: SessionSpec | None) -> dict[str, str]:
        return self.provider_options.get(spec.provider, {}) if spec else {}

    def _count_copy(self) -> None:
        with self._lock:
            self._copies += 1

    def _load(self, device: Device) -> LoadedModel:
        spec = device.session
        if spec is None:
            reason = "ONNX Runtime has no provider for it"
            raise NotLiveError(device.name, "absent", reason, "choose a device that runs onnx")
        if any(map(is_free_dimension, self.session_options)):
            check_free_dimensions(self.name, self.session_options, self.inputs)
        options = self._options_for(spec)
        stream = stream_for(device, options)
        session = open_session(
            self.model,
            spec,
            precision=self.precision,
            min_nodes=self.min_nodes,
            threads=self.threads,
            provider_options={**options, **(stream.options if stream else {})},
            session_options=self.session_options,
            custom_op_libraries=self.custom_op_libraries,
            cache=self.cache,
            device=f"{device.device_type} {device.attributes.description}",
            digest=self.digest,
        )
        for provider, left in session.left_nodes.items():
            reason = f"{spec.provider} does not take {left} of the {session.total_nodes} nodes"
            place = PROVIDER_TYPES.get(provider, provider)
            default_ledger().record(self.name, device.name, place, reason)
        return LoadedModel(self.name, session, stream)

    def __getstate__(self) -> dict[str, Any]:
        own = ("_copies", "_lock", "_idle", "_keys", "_declared", "digest")
        return {name: value for name, value in vars(self).items() if name not in own}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._start()

    def __repr__(self) -> str:
        return f"OnnxModel({self.name!r}, precision={self.precision!r}, min_nodes={self.min_nodes})"


def model_source(model: bytes | bytearray | memoryview | str | Path | OnnxModel) -> bytes | Path:
    """Return the bytes of *model*, or the path of its file.

    Raises:
        TypeError: It is neither a path, nor bytes, nor an `OnnxModel`.
    """
    return model.model if isinstance(model, OnnxModel) else checked_source(model)
