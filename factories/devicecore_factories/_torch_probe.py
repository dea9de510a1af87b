"""torch seen without importing it, and tried on every GPU that it shows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal

from attrs import evolve, frozen

from devicecore.errors import BrokenPackageError, NotLiveError
from devicecore.liveness import Liveness, PhysicalDevice
from devicecore.liveness.probe_result import failure
from devicecore.optional import package_dir, require
from devicecore.optional.faults import package_fault
from devicecore_factories import _answers
from devicecore_factories._faults import first_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Build = Literal["cuda", "hip", "xpu"]

_LINE = re.compile(r"""^(\w+)\s*(?::[^=]+)?=\s*["']([^"']+)["']""", re.MULTILINE)
_NAMES = {"cuda": "CUDA", "hip": "ROCm", "xpu": "XPU"}
_FIXES = {
    "cuda": "pip uninstall -y torch && pip install torch",
    "hip": "install the build of torch for ROCm",
    "xpu": "install the build of torch for XPU",
}


@frozen
class TorchBuild:
    """What the installed torch was built for.

    Attributes:
        version: Its version, such as ``"2.13.0+cpu"``.
        cuda: The version of CUDA, empty without.
        hip: The version of ROCm's HIP, empty without.
        xpu: The version of Intel's runtime, empty without.
    """

    version: str = ""
    cuda: str = ""
    hip: str = ""
    xpu: str = ""


def torch_build() -> TorchBuild | None:
    """Return what torch's own file says of it; None where torch is not installed."""
    folder = package_dir("torch")
    if folder is None:
        return None
    try:
        text = (folder / "version.py").read_text(encoding="utf-8")
    except OSError:
        return TorchBuild()
    facts = dict(_LINE.findall(text))
    return TorchBuild(
        facts.get("__version__", ""),
        facts.get("cuda", ""),
        facts.get("hip", ""),
        facts.get("xpu", ""),
    )


def torch_metadata(wanted: Build | None = None) -> Liveness:
    """Return whether torch is installed and built for *wanted*, from its files alone."""
    if fault := package_fault("torch"):
        return Liveness(fault.state, reason=fault.reason, fix=fault.fix)
    build = torch_build()
    if build is None:
        fix = "pip install 'devicecore[torch]'"
        return Liveness("missing", reason="torch is not installed", fix=fix)
    if wanted is None:
        return Liveness("untried", reason=f"torch {build.version} is installed")
    version: str = getattr(build, wanted)
    if not version:
        reason = f"torch {build.version} was built without {_NAMES[wanted]}"
        return Liveness("missing", reason=reason, fix=_FIXES[wanted])
    reason = f"torch {build.version} was built for {_NAMES[wanted]} {version}"
    return Liveness("untried", reason=reason)


def try_torch(place: str, gpus: Callable[[Any], Sequence[PhysicalDevice]]) -> Liveness:
    """Compute on every GPU that torch shows, and compare with the CPU.

    Args:
        place: torch's name of a GPU, with ``{}`` for its number, such as ``"cuda:{}"``.
        gpus: Returns the GPUs, given torch's module for them; it may raise `NotLiveError`.
    """
    try:
        torch = require("torch", extra="torch")
        seen = gpus(getattr(torch, place.partition(":")[0]))
    except NotLiveError as error:
        return _answers.not_live(error)
    except BrokenPackageError as error:
        return failure(error)
    return _answers.of_gpus(
        "torch", [(gpu, _compute(torch, place.format(gpu.index))) for gpu in seen]
    )


def torch_gpus(
    device_type: str, module: Any, known: Callable[[int, Any], PhysicalDevice | None]
) -> list[PhysicalDevice]:
    """Return the GPUs that torch shows.

    Args:
        device_type: Their type.
        module: torch's module for them.
        known: Returns what the system knows of a GPU, by torch's number and properties of it.
    """
    gpus = []
    for index in range(module.device_count()):
        properties = module.get_device_properties(index)
        gpu = known(index, properties) or PhysicalDevice(device_type, index)
        memory = properties.total_memory
        gpus.append(evolve(gpu, index=index, description=properties.name, memory_bytes=memory))
    return gpus


def _compute(torch: Any, place: str) -> Liveness:
    """Compute with small whole numbers, which every precision has exactly, and compare."""
    whole = torch.arange(-32, 32, dtype=torch.int32).reshape(8, 8)
    try:
        there = whole.to(place)
        integers = ((there * 3 + 1) // 2 + there.t()).cpu()
        floats = (there.float() @ there.float().t()).relu().cpu()
    except Exception as error:  # noqa: BLE001 - a driver may raise anything
        return _broken(error)
    right = torch.equal(integers, (whole * 3 + 1) // 2 + whole.t()) and torch.equal(
        floats, (whole.float() @ whole.float().t()).relu()
    )
    if not right:
        return Liveness("broken", "ran", reason=f"torch computes wrong results on {place}")
    return Liveness("live", "ran", reason=f"torch {torch.__version__} computed on {place}")


def _broken(error: Exception) -> Liveness:
    import traceback  # late: only a failure needs it

    fix = ""
    if "no kernel image" in str(error):
        fix = "install a build of torch that has kernels for this GPU"
    detail = "".join(traceback.format_exception(error))
    return Liveness("broken", "opened", first_line(error), detail, fix)
