"""ONNX's own backend interface on devices, so that its conformance suite runs on any of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar
from unittest import SkipTest

import numpy as np  # noqa: TID253 - nobody imports this module but for ONNX's suite
import onnx
from onnx.backend.base import Backend, BackendRep

from devicecore.errors import DeviceCoreError, ModelError, NotLiveError
from devicecore.ledger import default_ledger
from devicecore.onnx import OnnxModel
from devicecore.runtime import default_runtime

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from devicecore.device import Device

# The suite opens thousands of models and has no word for being done with one.
_MOST_SESSIONS = 32
# What every ONNX Runtime since 1.17 takes, for models made of one node.
_OPSET, _IR_VERSION = 21, 10
_NO_KERNEL = "NotImplemented"  # the class of ONNX Runtime's error
_NO_NODE = "it takes none of"


class OnnxBackend(Backend):
    """Runs ONNX's models on a device, as ``onnx.backend.test`` and other tools of ONNX ask for it.

    As it is, models run on the device that is asked for: ``"CPU"``, ``"CUDA:1"``, any name that
    devicecore knows. Derive from it and set `on` to test a device of your own. A test of a model
    that the device has no kernel for is skipped, any other fault is an error.

    Attributes:
        on: The device that everything runs on, or its name; it then answers to ``"CPU"``, of which
            the suite has one variant of each test. None for the device that is asked for.
        spare: The device for models of which the first one takes no node, or its name; each of them
            is in the ledger. None to skip their tests.
        model_options: Arguments of each `OnnxModel`.
        runs: How often each model is run on the same inputs; the last outputs count. What is kept
            between runs is tested with three: the first one binds, the third one finds it.
    """

    on: ClassVar[Device | str | None] = None
    spare: ClassVar[Device | str | None] = None
    model_options: ClassVar[Mapping[str, Any]] = {"cache": "none", "threads": 1}
    runs: ClassVar[int] = 3

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Return whether models run on *device*."""
        if cls.on is not None:
            return device == "CPU"
        try:
            return default_runtime().device(device, "onnx").session is not None
        except DeviceCoreError:
            return False

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **_kwargs: Any) -> OnnxRepresentation:
        """Open *model* on *device*; where a node of it has no kernel, raise ``unittest.SkipTest``.

        Args:
            model: The model as ``onnx.load`` gives it, its file or its bytes.
            device: The device, or its name; see `on`.

        Raises:
            ModelError: The model is at fault.
            NotLiveError: The device does not work for it.
            OutOfMemoryError: The device has too little memory.
        """
        source = model
        if isinstance(model, onnx.ModelProto):
            source = model.SerializeToString()
            onnx.checker.check_model(source)
        opened = OnnxModel(source, **cls.model_options)
        place = _device(device if cls.on is None else cls.on)
        try:
            return OnnxRepresentation(opened, place, cls.runs)
        except (ModelError, NotLiveError) as error:
            if type(error.__cause__).__name__ == _NO_KERNEL:
                raise SkipTest(error.reason) from error
            if not error.reason.startswith(_NO_NODE):
                raise
            if cls.spare is None:
                raise SkipTest(error.reason) from error
            spare = _device(cls.spare)
            default_ledger().record(opened.name, place.name, spare.name, error.reason)
            return OnnxRepresentation(opened, spare, cls.runs)

    @classmethod
    def run_node(
        cls,
        node: Any,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Any = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Run one operator on *inputs*, arrays in the order of its inputs, and return its outputs.

        Args:
            node: The node as ``onnx.helper.make_node`` gives it.
            inputs: Arrays.
            device: The device, or its name; see `on`.
            outputs_info: Not needed: ONNX Runtime infers it.
            kwargs: ``opset_version``, 21 if it is not given.
        """
        version = kwargs.get("opset_version", _OPSET)
        super().run_node(node, inputs, device, outputs_info, opset_version=version)
        given = [
            onnx.helper.make_tensor_value_info(
                name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
            )
            for name, array in zip(filter(None, node.input), map(np.asarray, inputs), strict=True)
        ]
        made = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        graph = onnx.helper.make_graph([node], "node", given, made)
        opset = [onnx.helper.make_opsetid(node.domain, version)]
        model = onnx.helper.make_model(graph, opset_imports=opset, ir_version=_IR_VERSION)
        return cls.prepare(model.SerializeToString(), device).run(list(inputs))


class OnnxRepresentation(BackendRep):
    """A model that is open on a device.

    Args:
        model: The model.
        device: The device.
        runs: How often it is run on the same inputs.

    Attributes:
        device: Where it runs.
        nodes: How many of its nodes each provider takes.
    """

    def __init__(self, model: OnnxModel, device: Device, runs: int = 1) -> None:
        held = device.resource_mgr
        if sum(held.containers().values()) >= _MOST_SESSIONS:
            held.clear()  # a model that is still in use opens its session again
        opened = model.session(device)
        self._model = model
        self._runs = runs
        self._names = [each.name for each in opened.session.get_inputs()]
        self.device = device
        self.nodes: Mapping[str, int] = opened.nodes

    def run(self, inputs: Any, **_kwargs: Any) -> tuple[Any, ...]:
        """Run it on *inputs*, an array for each input in the model's order, or the only array.

        Returns:
            Its outputs, in the model's order, of the last one of a few runs.
        """
        values: Sequence[Any] = inputs if isinstance(inputs, list | tuple) else [inputs]
        # A scalar of numpy is no array; a model with defaults may be given fewer than it has.
        feeds = {
            name: np.asarray(value) if isinstance(value, np.generic) else value
            for name, value in zip(self._names, values, strict=False)
        }
        outputs: Mapping[str, Any] = {}
        for _ in range(self._runs):
            outputs = self.device.compute(self._model, feeds)
        return tuple(outputs.values())


def _device(given: Device | str) -> Device:
    return default_runtime().device(given, "onnx")
