"""Programs of numpy and OpenCV, step by step, for the tests of recorded arrays."""

# ruff: noqa: PLW0108, RUF015 - steps of programs are written as programs write them

from __future__ import annotations

import copy
import io
import operator
import pickle
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from devicecore.migrate.plan.optimization_plan import Options  # noqa: E402
from devicecore.migrate.recording import execution  # noqa: E402 - after cv2
from devicecore.migrate.recording.lazy_array import LazyArray  # noqa: E402
from devicecore.migrate.recording.opencv_primitives import RECORDED  # noqa: E402
from devicecore.migrate.recording.operators import call_with_arrays, to_numpy  # noqa: E402
from devicecore.migrate.recording.recording import Recording  # noqa: E402
from devicecore.migrate.recording.snapshots import copy_array  # noqa: E402
from devicecore.runtime import host_cpu  # noqa: E402
from tests.migrate.recording.value_programs import VALUES  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

    from devicecore.device import Device

    Step = Callable[[list[Any]], Any]

OPTIONS = Options(kernel="torch")


class World:
    """Runs a program with arrays of numpy, or with what stands for them."""

    def __init__(
        self, images: list[Any], *, is_recorded: bool, device: Device | None = None
    ) -> None:
        self.device = device or host_cpu()
        self.recording = Recording(self._fetched, copy_array, self.device, OPTIONS)
        self.is_recorded = is_recorded
        self.arrays = [self.cv("flip", image.copy(), 1) for image in images]
        self.words: list[Any] = []

    def _fetched(self, node: Any) -> Any:
        return execution.download(execution.compute_node(self.device, node))

    def cv(self, name: str, *args: Any, **kwargs: Any) -> Any:
        if self.is_recorded and name in RECORDED:
            found = self.recording.record(RECORDED[name], args, kwargs, OPTIONS)
            if found is not None:
                return found
        return self.host(getattr(cv2, name), *args, **kwargs)

    def host(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        return call_with_arrays(lambda given, named: function(*given, **named), args, kwargs)

    def contiguous(self, array: Any) -> Any:
        return array.contiguous() if type(array) is LazyArray else np.ascontiguousarray(array)


KEYS = st.recursive(
    st.one_of(
        st.sampled_from([None, ..., 0, -1, 1, slice(None), np.int64(1), True, False, [0, 1], 99]),
        st.builds(
            slice,
            st.one_of(st.none(), st.integers(-6, 6)),
            st.one_of(st.none(), st.integers(-6, 6)),
            st.sampled_from([None, 1, 2, -1, -2]),
        ),
    ),
    lambda inner: st.lists(inner, min_size=1, max_size=4).map(tuple),
    max_leaves=4,
)
SCALARS = st.sampled_from(
    [
        *(0, 1, 2, 3, 255, 256, -1, 0.5, 2.0, 255.0, 1e300, float("nan"), True, False, 10**30),
        *(np.float32(0.1), np.float64(3), np.uint8(200), np.int16(-3), np.int64(5), np.bool_(True)),
        *(np.array(2.5), np.array([1, 2, 3], np.uint8), np.array([0.5, 0.25, 2.0])),
        *(np.array([1, 2, 3], np.float32).reshape(3, 1, 1), np.float32("inf"), 1j, None, "a"),
    ]
)
BINARY = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and_", "or_", "xor"]
BINARY += ["lshift", "rshift", "eq", "ne", "lt", "ge", "matmul"]
IN_PLACE = ["iadd", "isub", "imul", "itruediv", "ipow", "iand", "ifloordiv"]
# Not of powers: where numpy refuses a negative one, it may have written what was in its buffer.
IN_PLACE_PAIRS = [each for each in IN_PLACE if each != "ipow"]
UNARY = ["neg", "pos", "abs", "invert"]
DTYPES = ["uint8", "float32", "float64", "int32", "int16", "bool", "float16", ">f4", "int64", "S2"]
NUMPY: dict[str, Callable[..., Any]] = {
    "transpose": lambda x, y: np.transpose(x, tuple(range(x.ndim))[::-1]),
    "moveaxis": lambda x, y: np.moveaxis(x, -1, 0),
    "moveaxis99": lambda x, y: np.moveaxis(x, 5, 0),
    "T": lambda x, y: x.T,
    "T120": lambda x, y: x.transpose(1, 2, 0),
    "T201": lambda x, y: x.transpose((2, 0, -2)),
    "flip": lambda x, y: np.flip(x),
    "flip1": lambda x, y: np.flip(x, 1),
    "flip9": lambda x, y: np.flip(x, 9),
    "flipud": lambda x, y: np.flipud(x),
    "fliplr": lambda x, y: np.fliplr(x),
    "rot90": lambda x, y: np.rot90(x),
    "clip": lambda x, y: np.clip(x, 10, 200),
    "clip_kw": lambda x, y: np.clip(x, a_min=10, a_max=200.5),
    "clip_none": lambda x, y: np.clip(x, None, 9),
    "clip_out": lambda x, y: np.clip(x, 3, 9, out=x),
    "clip_m": lambda x, y: x.clip(2, 5),
    "clip_over": lambda x, y: np.clip(x, -3, 300),
    "stack": lambda x, y: np.stack([x, x]),
    "concatenate": lambda x, y: np.concatenate([x, y], axis=0),
    "stack_last": lambda x, y: np.stack((x, y), -1),
    "dstack": lambda x, y: np.dstack((x, x)),
    "hstack": lambda x, y: np.hstack((x, y)),
    "vstack": lambda x, y: np.vstack([x, y]),
    "where": lambda x, y: np.where(x > 100, x, 0),
    "expand_dims": lambda x, y: np.expand_dims(x, 0),
    "squeeze": lambda x, y: np.squeeze(x),
    "zeros_like": lambda x, y: np.zeros_like(x),
    "ones_like": lambda x, y: np.ones_like(x, dtype=np.float32),
    "asarray": lambda x, y: np.asarray(x),
    "asarray_f": lambda x, y: np.asarray(x, np.float32),
    "array": lambda x, y: np.array(x),
    "array_nocopy": lambda x, y: np.array(x, copy=False),
    "array_nocopy_f": lambda x, y: np.array(x, np.float32, copy=False),
    "array_list": lambda x, y: np.array([x, x]),
    "require": lambda x, y: np.require(x, requirements=["C", "W"]),
    "asfortran": lambda x, y: np.asfortranarray(x),
    "copy": lambda x, y: x.copy(),
    "copy_F": lambda x, y: x.copy("F"),
    "copy_K": lambda x, y: x.copy(order="K"),
    "np_copy": lambda x, y: np.copy(x),
    "copy_copy": lambda x, y: copy.copy(x),
    "deepcopy": lambda x, y: copy.deepcopy(x),
    "deepcopy_pair": lambda x, y: copy.deepcopy([x, x, {"a": y}])[1],
    "pickle": lambda x, y: pickle.loads(pickle.dumps(x)),
    "reshape": lambda x, y: x.reshape(-1),
    "ravel": lambda x, y: x.ravel(),
    "view": lambda x, y: x.view(),
    "view_int8": lambda x, y: x.view(np.int8),
    "sum": lambda x, y: x.sum(),
    "mean": lambda x, y: np.mean(x, axis=(0, 1)),
    "max": lambda x, y: x.max(axis=0),
    "argmax": lambda x, y: np.argmax(x),
    "std": lambda x, y: x.std(),
    "sqrt": lambda x, y: np.sqrt(x),
    "exp": lambda x, y: np.exp(x),
    "maximum": lambda x, y: np.maximum(x, y),
    "maximum3": lambda x, y: np.maximum(x, 3),
    "add_out": lambda x, y: np.add(x, 1, out=x),
    "add_out_y": lambda x, y: np.add(x, 1, out=y),
    "add_where": lambda x, y: np.add(x, 1, where=x > 3, out=x),
    "add_dtype": lambda x, y: np.add(x, 1, dtype=np.float32),
    "reduce": lambda x, y: np.add.reduce(x),
    "accumulate": lambda x, y: np.multiply.accumulate(x, axis=1),
    "at": lambda x, y: np.add.at(x, (0, 0), 1),
    "divmod": lambda x, y: divmod(x, 3),
    "np_divmod_out": lambda x, y: np.divmod(x, 3, out=(x, None)),  # type: ignore[arg-type]
    "round": lambda x, y: np.round(x / 3, 1),
    "fill": lambda x, y: x.fill(7),
    "sort": lambda x, y: x.sort(axis=0),
    "item": lambda x, y: x.item(0),
    "tolist": lambda x, y: x.tolist(),
    "tobytes": lambda x, y: x.tobytes(),
    "bytes": lambda x, y: bytes(x),
    "memoryview": lambda x, y: memoryview(x).tobytes(),
    "bytearray": lambda x, y: bytearray(x[0, :]) + bytearray(x),
    "interface": lambda x, y: x.__array_interface__["shape"],
    "len": lambda x, y: len(x),
    "repr": lambda x, y: (repr(x), str(x), f"{x}"),
    "bool": lambda x, y: bool(x),
    "bool1": lambda x, y: bool(x[:1, :1].any()),
    "int": lambda x, y: int(x[0, 0]) if x.ndim == 2 else int(x[0, 0, 0]),
    "float": lambda x, y: float(x[:1, :1].sum()),
    "hash": lambda x, y: hash(x),
    "in": lambda x, y: (3 in x, 3.5 in x),
    "iter": lambda x, y: [row.sum() for row in x],
    "unpack": lambda x, y: [*x][0],
    "zip": lambda x, y: [a.shape for a, b in zip(x, y, strict=False)],
    "flat": lambda x, y: [*x.flat][:4],
    "flat_set": lambda x, y: operator.setitem(x.flat, 0, 9),
    "isinstance": lambda x, y: isinstance(x, np.ndarray),
    "class": lambda x, y: x.__class__ is np.ndarray,
    "set_shape": lambda x, y: setattr(x, "shape", (-1,)),
    "set_dtype": lambda x, y: setattr(x, "dtype", np.int8),
    "set_strides": lambda x, y: setattr(x, "strides", x.strides),
    "set_writeable": lambda x, y: x.setflags(write=False),
    "flags": lambda x, y: (x.flags.c_contiguous, x.flags["F_CONTIGUOUS"], x.flags.writeable),
    "strides": lambda x, y: x.strides if x.size > 1 else None,
    "sizes": lambda x, y: (x.size, x.nbytes, x.ndim, x.itemsize, x.shape, np.shape(x), np.ndim(x)),
    "resize": lambda x, y: x.resize((2, 2)),
    "shares": lambda x, y: np.shares_memory(x, y),
    "equal": lambda x, y: np.array_equal(x, y),
    "allclose": lambda x, y: np.allclose(x, y),
    "unique": lambda x, y: np.unique(x),
    "pad": lambda x, y: np.pad(x, [(1, 1)] * x.ndim),
    "repeat": lambda x, y: np.repeat(x, 2, axis=0),
    "tile": lambda x, y: np.tile(x, 2),
    "split": lambda x, y: np.array_split(x, 2)[0],
    "take": lambda x, y: np.take(x, [0], axis=1),
    "einsum": lambda x, y: np.einsum("ij...->ji...", x),
    "dot": lambda x, y: x[..., 0] @ x[..., 0].T if x.ndim == 3 else None,
    "histogram": lambda x, y: np.histogram(x, bins=4)[0],
    "save": lambda x, y: np.save(io.BytesIO(), x),
    "frompyfunc": lambda x, y: np.frompyfunc(lambda a: int(a) + 1, 1, 1)(x),
    "apply": lambda x, y: np.apply_along_axis(np.sum, 0, x),
    "broadcast": lambda x, y: np.broadcast_to(x, (2, *x.shape)),
    "nditer": lambda x, y: [int(v) for v in np.nditer(x)][:3],  # type: ignore[call-overload]
    "mask": lambda x, y: x[x > 100],
    "mask_set": lambda x, y: operator.setitem(x, x > 100, 0),
    "fancy": lambda x, y: x[[0, -1]],
    "fancy2": lambda x, y: x[np.array([0]), :],
    "key_array": lambda x, y: y[(x > 3)[: y.shape[0], : y.shape[1]]] if x.ndim == 2 else None,
    "overlap": lambda x, y: operator.setitem(x, slice(1, None), x[:-1]),
    "set_other": lambda x, y: operator.setitem(x, ..., y),
    "del": lambda x, y: operator.delitem(x, 0),
    "errstate": lambda x, y: _with_errstate(x),
    "div_zero": lambda x, y: x / 0,
    "div_other": lambda x, y: x / y,
    "overflow": lambda x, y: x * 1e38 * 1e38,
    "norm": lambda x, y: (x.astype(np.float32) / 255.0 - 0.5) / 0.25,
    "norm3": lambda x, y: (x - np.array([1.0, 2, 3])) * np.float32(0.1),
    "u8": lambda x, y: (x.astype(np.float32) * 0.5).astype(np.uint8),
    "copy_false": lambda x, y: x.astype(np.float32, copy=False),
    "same_false": lambda x, y: x.astype(x.dtype, copy=False),
    "astype_kw": lambda x, y: x.astype(np.float32, order="F"),
    "astype_cast": lambda x, y: x.astype(np.uint8, casting="safe"),
    "torch": lambda x, y: torch.utils.data.default_collate([x, x]),
    "masked": lambda x, y: np.ma.masked_array(x, x > 9).filled(1).sum(),
    "masked_add": lambda x, y: (x + np.ma.masked_array(np.ones(x.shape), np.ones(x.shape))).count(),
    "matrix": lambda x, y: x * np.matrix(np.eye(x.shape[1])),
    "real": lambda x, y: x.real,
    "byteswap": lambda x, y: x.byteswap(inplace=True),
    "swap": lambda x, y: x.swapaxes(0, 1),
    "put": lambda x, y: np.put(x, [0], [5]),
    "copyto": lambda x, y: np.copyto(x, 3, where=x > 9),
    "ctypes": lambda x, y: bool(x.ctypes.data),
    "sorted_in": lambda x, y: x.tolist() == [*map(list, x)] if x.ndim == 2 else None,
}
OPENCV: dict[str, Callable[[World, Any, Any], Any]] = {
    "flip": lambda w, x, y: w.cv("flip", x, 0),
    "resize": lambda w, x, y: w.cv("resize", x, (5, 4)),
    "blur": lambda w, x, y: w.cv("blur", x, (3, 3)),
    "add": lambda w, x, y: w.cv("add", x, x),
    "add_y": lambda w, x, y: w.cv("add", x, y),
    "rotate": lambda w, x, y: w.cv("rotate", x, cv2.ROTATE_90_CLOCKWISE),
    "split": lambda w, x, y: w.cv("split", x),
    "merge": lambda w, x, y: w.cv("merge", [x, x]),
    "add_dst": lambda w, x, y: w.cv("add", x, 3, dst=x),
    "add_y_dst": lambda w, x, y: w.cv("add", x, x, dst=y),
    "add_view_dst": lambda w, x, y: w.cv("add", x[::-1], 3, dst=x),
    "add_into_view": lambda w, x, y: w.cv("add", x[1:], 3, dst=x[1:]),
    "add_mask_dst": lambda w, x, y: w.cv("add", x, 3, dst=x, mask=x[..., 0] if x.ndim > 2 else x),
    "multiply_dst": lambda w, x, y: w.cv("multiply", x, y, dst=x),
    "lut_dst": lambda w, x, y: w.cv("LUT", x, np.arange(256, dtype=np.uint8), dst=x),
    "lut_of": lambda w, x, y: w.cv("LUT", x, w.cv("flip", np.arange(256, dtype=np.uint8)[None], 1)),
    "filter_by": lambda w, x, y: w.cv("filter2D", x, -1, y[:3, :3]),
    "warp_by": lambda w, x, y: w.cv("warpAffine", x, y.astype(np.float32)[:2, :3], (4, 4)),
    "flip_dst": lambda w, x, y: w.cv("flip", x, 1, dst=y),
    "threshold": lambda w, x, y: w.cv("threshold", x, 99, 255, 0),
    "rectangle": lambda w, x, y: w.cv("rectangle", x, (1, 1), (2, 2), (9, 9, 9), -1),
    "circle_view": lambda w, x, y: w.cv("circle", x[1:], (1, 1), 1, (7, 7, 7)),
    "mean": lambda w, x, y: w.cv("mean", x),
    "grey": lambda w, x, y: w.cv("cvtColor", x, cv2.COLOR_BGR2GRAY),
    "rgb": lambda w, x, y: w.cv("cvtColor", x, cv2.COLOR_BGR2RGB),
    "lut": lambda w, x, y: w.cv("LUT", x, np.arange(256, dtype=np.uint8)[::-1].copy()),
    "contiguous": lambda w, x, y: w.contiguous(x),
    "from_numpy": lambda w, x, y: w.host(torch.from_numpy, x).clone(),
    "as_tensor": lambda w, x, y: w.host(torch.as_tensor, x).clone(),
}


def _with_errstate(x: Any) -> Any:
    with np.errstate(all="raise"):
        return x / (x * 0)


def steps() -> st.SearchStrategy[Any]:
    return st.one_of(
        st.tuples(st.just("numpy"), st.sampled_from(sorted(NUMPY))),
        st.tuples(st.just("values"), st.sampled_from(sorted(VALUES))),
        st.tuples(st.just("cv"), st.sampled_from(sorted(OPENCV))),
        st.tuples(st.just("index"), KEYS),
        st.tuples(st.just("index"), KEYS),
        st.tuples(st.just("assign"), KEYS, SCALARS),
        st.tuples(st.just("astype"), st.sampled_from(DTYPES)),
        st.tuples(st.just("binary"), st.sampled_from(BINARY), SCALARS, st.booleans()),
        st.tuples(st.just("pair"), st.sampled_from(BINARY)),
        st.tuples(st.just("in place"), st.sampled_from(IN_PLACE), SCALARS),
        st.tuples(st.just("in place pair"), st.sampled_from(IN_PLACE_PAIRS)),
        st.tuples(st.just("unary"), st.sampled_from(UNARY)),
    )


def done(  # noqa: C901, PLR0911 - a case for each kind of step
    world: World, step: tuple[Any, ...], x: Any, y: Any
) -> Any:
    what, *rest = step
    match what:
        case "numpy":
            return NUMPY[rest[0]](x, y)
        case "values":
            return VALUES[rest[0]](x, y)
        case "cv":
            return OPENCV[rest[0]](world, x, y)
        case "index":
            return x[rest[0]]
        case "assign":
            x[rest[0]] = rest[1]
            return None
        case "astype":
            return x.astype(rest[0])
        case "binary":
            pair = (rest[1], x) if rest[2] else (x, rest[1])
            return getattr(operator, rest[0])(*pair)
        case "pair" | "in place pair":
            return getattr(operator, rest[0])(x, y)
        case "in place":
            return getattr(operator, rest[0])(x, rest[1])
        case "unary":
            return getattr(operator, rest[0])(x)


def ran(world: World, program: Any) -> Any:
    """Run a program; return what each step said, and the error that ended it."""
    said: list[Any] = []
    for first, second, step in program:
        x, y = (world.arrays[place % len(world.arrays)] for place in (first, second))
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                result = done(world, step, x, y)
            except Exception as error:  # noqa: BLE001 - programs have all kinds of errors
                return said, error
        said.append(sorted(each.category.__name__ for each in warned))
        for each in result if isinstance(result, (tuple, list)) else [result]:
            if type(each) is np.ndarray or type(each) is LazyArray:
                world.arrays.append(each)
            else:
                world.words.append(each)
    return said, None


def assert_like(found: Any, expected: Any) -> None:
    found = to_numpy(found)
    assert type(found) is type(expected)
    if isinstance(expected, np.ndarray):
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        for each in ("C", "F", "W"):
            assert found.flags[each] == expected.flags[each]
        if min(expected.shape, default=1) > 1:
            assert found.strides == expected.strides
        assert found.tobytes() == expected.tobytes() or found.dtype == object
    elif isinstance(expected, torch.Tensor):
        assert found.dtype == expected.dtype
        assert found.numpy().tobytes() == expected.numpy().tobytes()
    elif isinstance(expected, (float, np.generic)):
        np.testing.assert_equal(found, expected)
    else:
        assert found == expected
