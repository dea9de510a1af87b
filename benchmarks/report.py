"""Print the benchmarks beside their gates and their peers, and keep the figures.

Reads what pytest-benchmark wrote. Nothing fails here: a gate is for whoever reads the table.
"""

from __future__ import annotations

import argparse
import json
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from attrs import asdict, frozen

SCALES = {"µs": 1e6, "ms": 1e3, "s": 1.0}
PACKAGES = ("devicecore", "attrs", "numpy", "onnxruntime", "torch")
# TensorFlow and JAX are not installed beside the tests; these were measured once.
CITED_FROM = "TensorFlow 2.21.0 and JAX 0.10.2 for the CPU; 2-core Xeon, Python 3.11.7"


@frozen
class Peer:
    """What others need for the same.

    Attributes:
        name: Whose figure.
        benchmark: Its benchmark in the same run, or an empty string.
        over: What is taken off that, as for a `Row`.
        cited: The figure that was measured once, in the row's unit, where it does not run here.
    """

    name: str
    benchmark: str = ""
    over: str = ""
    cited: float | None = None


@frozen
class Row:
    """One line of the table.

    Attributes:
        what: What one unit is.
        benchmark: Our benchmark.
        unit: ``µs``, ``ms``, ``s``, or ``MB``, which is the benchmark's own figure.
        gate: The figure that is not to be exceeded, if there is one.
        share: The gate as a share of what the first peer takes in the same run.
        over: The benchmark whose time is taken off, so that only what we add is left.
        peers: Others.
    """

    what: str
    benchmark: str
    unit: str = "µs"
    gate: float | None = None
    share: float | None = None
    over: str = ""
    peers: tuple[Peer, ...] = ()


TORCH_LIBRARY = Peer("torch.library raw", "bench_peer_torch_library_raw")
TORCH_OPS = Peer("torch.ops", "bench_peer_torch_ops")
RUN = Peer("onnxruntime run", "bench_peer_onnxruntime_run")
TINY_RUN = Peer("onnxruntime run", "bench_peer_onnxruntime_tiny")
ROWS = (
    Row(
        "parse a name, cached",
        "bench_parse_cached",
        gate=0.10,
        peers=(Peer("torch.device", "bench_peer_torch_parse"), Peer("TensorFlow", cited=0.764)),
    ),
    Row(
        "parse a new name",
        "bench_parse_new[/job:worker/replica:0/task:{}/device:GPU:2]",
        gate=3.0,
        peers=(Peer("TensorFlow", cited=3.72),),
    ),
    Row("parse a new name like cuda:1", "bench_parse_new[cuda:{}]", gate=3.0),
    Row("merge two names", "bench_merge", peers=(Peer("TensorFlow", cited=1.07),)),
    Row(
        "look up an alias, 8 devices",
        "bench_lookup_local_alias[8]",
        gate=0.10,
        peers=(Peer("TensorFlow C++", cited=0.047),),
    ),
    Row("look up an alias, 10,000 devices", "bench_lookup_local_alias[10000]", gate=0.10),
    Row("look up a full name, 10,000 devices", "bench_lookup_full_name[10000]", gate=0.10),
    Row("look up a name that is no alias", "bench_lookup_parsed_name"),
    Row(
        "compute, no predicate, over the bare call",
        "bench_compute_no_predicate",
        gate=0.25,
        over="bench_bare_call",
        peers=(TORCH_LIBRARY, TORCH_OPS, RUN, Peer("JAX", cited=5.42)),
    ),
    Row(
        "compute, one predicate, over the bare call",
        "bench_compute_one_predicate",
        gate=0.6,
        over="bench_bare_call",
        peers=(TORCH_LIBRARY, TORCH_OPS, RUN, Peer("JAX", cited=5.42)),
    ),
    Row(
        "DeviceMgr.compute, over the bare call",
        "bench_manager_compute",
        gate=1.0,
        over="bench_bare_call",
        peers=(TORCH_LIBRARY, RUN, Peer("TensorFlow", cited=13.8)),
    ),
    Row("compute a callable, over the bare call", "bench_compute_callable", over="bench_bare_call"),
    Row("compute_async and wait", "bench_compute_async"),
    Row(
        "run a tiny model, checked, fresh result",
        "bench_onnx_tiny",
        share=0.85,
        peers=(TINY_RUN,),
    ),
    Row("the same, tensors of torch", "bench_onnx_tiny_torch", gate=8.0, peers=(TINY_RUN,)),
    Row(
        "the same, values of onnxruntime",
        "bench_onnx_tiny_value",
        peers=(Peer("onnxruntime run_with_ort_values", "bench_peer_onnxruntime_tiny_value"),),
    ),
    Row(
        "run a model with 12.6 MB out",
        "bench_onnx_large",
        share=1.10,
        peers=(
            Peer("a copy in memory", "bench_peer_memory_copy"),
            Peer("onnxruntime run", "bench_peer_onnxruntime_large"),
        ),
    ),
    Row(
        "load a model of 21 MB that was kept",
        "bench_onnx_load[all]",
        "ms",
        peers=(Peer("loaded from its file", "bench_onnx_load[none]"),),
    ),
    Row(
        "enter and leave a scope, no framework",
        "bench_scope_no_framework",
        gate=1.3,
        peers=(
            Peer("jax.default_device", cited=0.22),
            Peer("tf.device", cited=1.57),
            Peer("paddle.device.device", cited=2.93),
        ),
    ),
    Row(
        "the same, torch's default set and put back",
        "bench_scope_torch",
        share=2.2,
        peers=(Peer("torch.device", "bench_peer_torch_device"),),
    ),
    Row(
        "the same, torch's default is that already",
        "bench_scope_torch_default",
        peers=(Peer("torch.device", "bench_peer_torch_device"),),
    ),
    Row(
        "torch.empty(1) in one scope",
        "bench_empty_in_scopes[1]",
        share=1.05,
        peers=(Peer("in one torch.device", "bench_peer_empty_in_torch_device[1]"),),
    ),
    Row(
        "torch.empty(1) in three scopes",
        "bench_empty_in_scopes[3]",
        share=1.05,
        peers=(
            Peer("in one torch.device", "bench_peer_empty_in_torch_device[1]"),
            Peer("in three", "bench_peer_empty_in_torch_device[3]"),
        ),
    ),
    Row(
        "torch.empty(1) in a scope of the CPU",
        "bench_empty_in_cpu_scope",
        share=1.05,
        peers=(Peer("outside", "bench_peer_empty"),),
    ),
    Row("current_device(), in a scope", "bench_current_device", gate=0.08),
    Row("current_device(), outside", "bench_current_device_outside", gate=0.08),
    Row("pick the live factory, cached", "bench_pick_cached", gate=0.10),
    Row(
        "walk a batch, nothing to move, a leaf",
        "bench_transfer_nothing_to_move",
        gate=0.45,
        peers=(
            Peer("optree", "bench_peer_optree_nothing_to_move"),
            Peer("torch pytree", "bench_peer_pytree_nothing_to_move"),
            Peer("accelerate", "bench_peer_accelerate_nothing_to_move"),
            Peer("Lightning", "bench_peer_lightning_nothing_to_move"),
            Peer("tensor.to", "bench_peer_to_nothing_to_move"),
        ),
    ),
    Row(
        "move a batch to meta, packed, a leaf",
        "bench_transfer_packed",
        peers=(Peer("tensor.to", "bench_peer_to_moved"),),
    ),
    Row(
        "move a batch to meta, one by one, a leaf",
        "bench_transfer_moved",
        peers=(Peer("tensor.to", "bench_peer_to_moved"),),
    ),
    Row("one tensor that is there already", "bench_transfer_one_tensor"),
    Row("cv.resize, 8 x 8, over cv2", "bench_cv_small", gate=2.0, over="bench_peer_cv_small"),
    Row(
        "cv.resize, 1080p to 224",
        "bench_cv_large",
        share=1.03,
        peers=(Peer("cv2", "bench_peer_cv_large"),),
    ),
    Row(
        "call off the plan, over the bare call",
        "bench_migrate_off_plan",
        gate=1.0,
        over="bench_migrate_bare_call",
        peers=(Peer("a wrapper by hand", "bench_peer_wrapper_by_hand", "bench_migrate_bare_call"),),
    ),
    Row(
        "the same, kept after the plan's end",
        "bench_migrate_kept_wrapper",
        gate=1.0,
        over="bench_migrate_bare_call",
    ),
    Row(
        "call in the plan, nothing computed",
        "bench_migrate_in_plan",
        gate=10.0,
        over="bench_migrate_bare_call",
    ),
    Row(
        "the same, to a tensor and back",
        "bench_migrate_to_tensor_and_back",
        peers=(Peer("from_numpy, numpy, copy", "bench_peer_tensor_and_back"),),
    ),
    Row(
        "cv2.flip in the plan, over cv.flip",
        "bench_migrate_cv2_flip",
        gate=10.0,
        over="bench_peer_cv_flip",
        peers=(Peer("cv2", "bench_peer_cv2_flip"), Peer("cv.flip", "bench_peer_cv_flip")),
    ),
    Row(
        "frame around a planned call, over the bare call",
        "bench_migrate_frame_on_the_path",
        over="bench_migrate_bare_call",
    ),
    Row(
        "frame in the plan, over the bare call",
        "bench_migrate_frame_in_plan",
        over="bench_migrate_bare_call",
    ),
    Row(
        "activate a plan, 3,000 modules more",
        "bench_migrate_activate",
        "ms",
        peers=(Peer("one look at all names", "bench_peer_look_at_all_names"),),
    ),
    Row(
        "deactivate it",
        "bench_migrate_deactivate",
        "ms",
        peers=(Peer("one look at all names", "bench_peer_look_at_all_names"),),
    ),
    Row(
        "import DeviceMgr and device_scope, over Python",
        "bench_import",
        "ms",
        gate=60,
        over="bench_python",
        peers=(
            Peer("attrs alone", "bench_peer_import_attrs", "bench_python"),
            Peer("torch", "bench_peer_import_torch", "bench_python"),
        ),
    ),
    Row(
        "devicecore resolve --framework torch",
        "bench_resolve_torch",
        "ms",
        gate=150,
        peers=(Peer("torch; is_available()", "bench_peer_torch_is_available"),),
    ),
    Row("list devices and reasons, evidence cached", "bench_list_devices", "ms", gate=250),
    Row("list devices and reasons, first time", "bench_list_devices_first", "ms", gate=3000),
    Row("add 10,000 devices", "bench_add_10000", "s", gate=1.0),
    Row("make and add 10,000 devices", "bench_make_and_add_10000", "s"),
    Row("memory for adding 10,000 devices", "bench_add_10000", "MB", gate=20),
)


@frozen
class Figure:
    """What came of one row."""

    what: str
    unit: str
    median: float
    minimum: float
    gate: float | None
    peers: dict[str, float]


class Results:
    """The benchmarks of one run, by name."""

    def __init__(self, run: dict[str, Any]) -> None:
        self._by_name = {each["name"]: each for each in run["benchmarks"]}

    def time(self, name: str, unit: str, over: str = "", which: str = "median") -> float | None:
        """Return the time of one call, less that of *over*; None where it did not run."""
        found = self._by_name.get(name)
        if found is None:
            return None
        if unit == "MB":
            return float(found["extra_info"]["megabytes"])
        one = found["stats"][which] / found["extra_info"].get("calls", 1) * SCALES[unit]
        return float(one - ((self.time(over, unit, which=which) or 0.0) if over else 0.0))

    def figure(self, row: Row) -> Figure | None:
        """Return the figure of *row*; None where it did not run."""
        median = self.time(row.benchmark, row.unit, row.over)
        minimum = self.time(row.benchmark, row.unit, row.over, "min")
        if median is None or minimum is None:
            return None
        peers = {
            peer.name + (" (cited)" if peer.cited else ""): time
            for peer in row.peers
            if (time := peer.cited or self.time(peer.benchmark, row.unit, peer.over)) is not None
        }
        gate = row.gate
        if row.share is not None and peers:
            gate = row.share * next(iter(peers.values()))
        return Figure(row.what, row.unit, median, minimum, gate, peers)


def line(figure: Figure) -> str:
    """Return one line of the table: ours, the gate, and each peer as a multiple of ours."""
    gate = ""
    if figure.gate is not None:
        verdict = "ok" if figure.median <= figure.gate else "OVER"
        gate = f"<= {figure.gate:.3g} {verdict}"
    peers = ", ".join(
        f"{name} {time:.3g} = {time / figure.median:.1f}x" for name, time in figure.peers.items()
    )
    ours = f"{figure.median:9.3f} {figure.minimum:9.3f} {figure.unit:3}"
    return f"{figure.what:47} {ours} {gate:13} {peers}".rstrip()


def machine(run: dict[str, Any]) -> dict[str, Any]:
    """Return what is needed to compare this run with another; nothing that names the machine."""
    info, cpu = run["machine_info"], run["machine_info"]["cpu"]
    return {
        "cpu": cpu.get("brand_raw", info["machine"]),
        "cpus": cpu.get("count"),
        "system": info["system"],
        "python": info["python_version"],
        "versions": {name: found for name in PACKAGES if (found := _version(name))},
        "commit": run["commit_info"].get("id"),
        "date": run["datetime"][:10],
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def main() -> None:
    """Read a run, print the table, keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, nargs="?", default=Path("build/bench.json"))
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "cpu.json")
    arguments = parser.parse_args()
    run = json.loads(arguments.run.read_text(encoding="utf-8"))
    results = Results(run)
    figures = [figure for row in ROWS if (figure := results.figure(row))]
    print(f"{'':47} {'median':>9} {'min':>9}     {'gate':13} peers, as multiples of ours")
    for figure in figures:
        print(line(figure))
    print(f"cited: {CITED_FROM}")
    kept = {"machine": machine(run), "cited": CITED_FROM, "figures": [asdict(f) for f in figures]}
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
