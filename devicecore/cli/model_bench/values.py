"""What is asked of a measurement, and what comes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from devicecore.ort import CachePolicy, Precision

# Of the largest value of an output. Float32 on another device stays a hundred times below it;
# bfloat16 does not.
TOLERANCE = 1e-3
# Below this, whatever the largest value is: outputs that are all next to nothing, as probabilities
# of noise are, differ by more than that part of it between any two ways to compute them.
TOLERANCE_ABSOLUTE = 1e-6


@frozen
class Inputs:
    """Where the inputs come from.

    Attributes:
        shapes: The shapes of generated ones that were asked for, by the name of the input.
        file: A file of numpy's with an array for each input; None to generate them.
    """

    shapes: Mapping[str, tuple[int, ...]] = {}
    file: Path | None = None


@frozen
class Given:
    """One input as it was given.

    Attributes:
        name: Its name.
        dtype: numpy's name of its element type; ``"text"`` for texts.
        shape: Its shape.
        chosen: Which sizes of the shape the model leaves open and nobody asked for, from 0.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    chosen: tuple[int, ...] = ()


@frozen
class Reference:
    """What the CPU answers in float32; the arrays themselves are in the folder of the measurement.

    Attributes:
        inputs: The inputs that it was given.
        outputs: The names of its outputs.
        has_nan: Whether there are NaN among its numbers, so that little can be said of others.
    """

    inputs: tuple[Given, ...]
    outputs: tuple[str, ...]
    has_nan: bool = False


@frozen
class Task:
    """What a child process does with a model.

    Attributes:
        model: The model's file.
        folder: Where inputs and the CPU's outputs are kept for all devices.
        device: The name of the device; the CPU for the reference.
        precision: What it computes in.
        runs: It runs no more often than this when it is measured.
        seconds: No run starts later than this after the first one that is measured.
        cache: Which engines it takes from earlier processes, and keeps.
    """

    model: Path
    folder: Path
    device: str
    precision: Precision = "f32"
    runs: int = 1
    seconds: float = 0.0
    cache: CachePolicy = "none"


@frozen
class Difference:
    """How far outputs are from those of the CPU in float32.

    Attributes:
        absolute: The largest difference of two numbers; None where there is no number for it.
        relative: The largest one in parts of the largest number of its output; None likewise.
        fault: What no number says, such as ``"NaN"``; empty where nothing is.
    """

    absolute: float | None = 0.0
    relative: float | None = 0.0
    fault: str = ""

    @property
    def agrees(self) -> bool:
        """Whether the answer is that of the CPU, but for rounding."""
        if self.fault or self.relative is None or self.absolute is None:
            return False
        return self.relative <= TOLERANCE or self.absolute <= TOLERANCE_ABSOLUTE


@frozen
class Figures:
    """What was measured of a model on one device.

    Attributes:
        provider: The provider of ONNX Runtime that ran it.
        load_s: Reading the model and opening the session, in seconds.
        first_run_s: The first run, in seconds.
        run_s: Those that followed, in seconds, without the ones to warm up.
        live_nodes: How many nodes the provider ran.
        total_nodes: How many there are, after ONNX Runtime optimised the model.
        difference: How far the outputs are from those of the CPU in float32.
        host_bytes: By how much the process grew at most, in bytes; None where nobody tells.
        device_bytes: By how much less is free on the device, in bytes; None where nobody tells.
    """

    provider: str
    load_s: float
    first_run_s: float
    run_s: tuple[float, ...]
    live_nodes: int
    total_nodes: int
    difference: Difference
    host_bytes: int | None
    device_bytes: int | None


@frozen
class DeviceResult:
    """One device of the report.

    Attributes:
        device: Its name.
        description: What it is, for a person.
        figures: What was measured; None if it could not run the model.
        error: Why it could not; empty if it could.
    """

    device: str
    description: str
    figures: Figures | None = None
    error: str = ""

    @property
    def short(self) -> str:
        """The short form of its name, such as ``"CUDA:0"``."""
        return self.device.rpartition("/device:")[2]
