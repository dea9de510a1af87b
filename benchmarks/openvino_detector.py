"""OpenVINO on the CPU beside ONNX Runtime's own CPU provider: the text detector PP-OCRv4 at 640².

Run it where OpenVINO is live: ``python benchmarks/openvino_detector.py results.json COMMIT PAGE``;
under ``taskset -c 0,1`` for two CPUs. Both compute in float32. The boxes are compared first; the
runs take turns; each load is that of a session in a process of its own, which has imported ONNX
Runtime and registered the plug-in before. Prints a short table last.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from devicecore.cli.page_reader.detection import boxes_in
from devicecore.config import effective_cpu_count
from devicecore.device import Device
from devicecore.device_factory import DeviceOptions, default_registry
from devicecore.onnx import OnnxModel
from devicecore.optional import package_dir, require
from devicecore.ort import CPU_PROVIDER, SessionSpec, ort_package

SIDE = 640
ROUNDS = 40
LOADS = 5
LOAD = """\
import sys, time
import onnxruntime
from devicecore.ort import register
from openvino_detector import device_of, detector
device = device_of(sys.argv[1])
model = detector()
if device.session.library:
    register(device.session.library)
start = time.perf_counter()
model.session(device)
print(time.perf_counter() - start)
"""


def detector() -> OnnxModel:
    """Return the model, out of an installed wheel."""
    folder = package_dir("rapidocr_onnxruntime")
    if folder is None:
        sys.exit("rapidocr-onnxruntime is not installed: its wheel carries PP-OCRv4")
    return OnnxModel(next((folder / "models").glob("*PP-OCRv4_det*.onnx")))


def device_of(device_type: str) -> Any:
    """Return a device of *device_type* for models."""
    if device_type == "CPU":
        return Device("/device:CPU:0", session=SessionSpec(CPU_PROVIDER), frameworks=("onnx",))
    return default_registry().new_device(device_type, DeviceOptions(frameworks=("onnx",)), "")


def page(path: Path) -> tuple[Any, tuple[int, ...]]:
    """Return the page as the model takes it, and its height and width."""
    cv2 = require("cv2", extra="demo")
    image = cv2.imread(str(path))
    scaled = (cv2.resize(image, (SIDE, SIDE)).astype(np.float32) / 255 - 0.5) / 0.5
    return np.ascontiguousarray(scaled.transpose(2, 0, 1)[np.newaxis]), image.shape[:2]


def load_ms(device_type: str, *, warm: bool) -> float:
    """Return the median time of a session's creation in a new process, in ms."""
    times = []
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(LOADS + warm):
            cache = folder if warm else str(Path(folder, str(turn)))
            path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
            told = subprocess.run(
                [sys.executable, "-c", LOAD, device_type],
                env={**os.environ, "DEVICECORE_CACHE_DIR": cache, "PYTHONPATH": path},
                capture_output=True,
                text=True,
                check=True,
            )
            times.append(float(told.stdout) * 1e3)
    return statistics.median(times[warm:])


def main() -> int:
    """Compare the boxes, time, write the JSON and print the table."""
    out, commit, picture = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    model, devices = detector(), {name: device_of(name) for name in ("CPU", "OPENVINO")}
    feed, size = page(picture)
    maps = {name: model(device, {"x": feed}) for name, device in devices.items()}
    answers = {name: next(iter(found.values())) for name, found in maps.items()}
    host = default_registry().new_device("CPU", DeviceOptions(), "")
    boxes = {name: np.array(boxes_in(found[0, 0], size, host)) for name, found in answers.items()}
    times: dict[str, list[float]] = {name: [] for name in devices}
    for _ in range(ROUNDS):
        for name, device in devices.items():
            start = time.perf_counter()
            device.compute(model, {"x": feed})
            times[name].append((time.perf_counter() - start) * 1e3)
    package, session = ort_package(), model.session(devices["OPENVINO"])
    found: dict[str, Any] = {
        "machine": {
            "cpus": effective_cpu_count(),
            "onnxruntime": package.name if package else "",
            "openvino": "plug-in" if session.spec.is_plugin else "in the build",
            "python": platform.python_version(),
            "system": platform.platform(),
            "commit": commit,
        },
        "nodes": f"{session.live_nodes}/{session.total_nodes}",
        "boxes": {name: len(each) for name, each in boxes.items()},
        "same boxes": bool(np.array_equal(boxes["CPU"], boxes["OPENVINO"])),
        "largest error": float(np.abs(answers["CPU"] - answers["OPENVINO"]).max()),
        "run_ms": {name: statistics.median(each) for name, each in times.items()},
        "load_ms": {
            "first": load_ms("OPENVINO", warm=False),
            "second": load_ms("OPENVINO", warm=True),
        },
    }
    out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    run, load = found["run_ms"], found["load_ms"]
    print(f"boxes {found['boxes']} same {found['same boxes']} error {found['largest error']:.1e}")
    print(f"run   CPU {run['CPU']:.1f} ms, OpenVINO {run['OPENVINO']:.1f} ms", end="  ")
    print(f"ratio {run['OPENVINO'] / run['CPU']:.2f} (gate 0.65)")
    print(f"load  first {load['first']:.0f} ms, second {load['second']:.0f} ms", end="  ")
    print(f"ratio {load['second'] / load['first']:.2f} (gate 0.5)")
    return 0 if found["same boxes"] else 1


if __name__ == "__main__":
    sys.exit(main())
