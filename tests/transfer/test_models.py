"""Models of pydantic, distributions of torch and arrays of objects: moved, and made anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pytest

from devicecore import tensors_to_device
from devicecore.errors import TransferError
from devicecore.ledger import default_ledger

torch = pytest.importorskip("torch")

if TYPE_CHECKING:
    from collections.abc import Callable

distributions = torch.distributions


def t() -> Any:
    return torch.ones(2)


def devices_in(value: Any) -> set[str]:
    """Return the devices of all tensors in attributes and containers, however deep."""
    seen: dict[int, Any] = {}
    waiting, found = [value], set()
    while waiting:
        each = waiting.pop()
        if id(each) in seen:
            continue
        seen[id(each)] = each
        if isinstance(each, torch.Tensor):
            found.add(each.device.type)
        elif isinstance(each, dict):
            waiting += each.values()
        elif isinstance(each, (list, tuple, set)):
            waiting += each
        else:
            waiting += getattr(each, "__dict__", {}).values()
            waiting += getattr(each, "__pydantic_private__", None) or ()
    return found


def check_moved(value: Any) -> Any:
    before = default_ledger().total
    (moved,) = tensors_to_device([value], "meta")
    assert type(moved) is type(value)
    assert moved is not value
    assert devices_in(value) == {"cpu"}
    assert devices_in(moved) == {"meta"}
    assert default_ledger().total == before
    data = [moved]
    assert tensors_to_device(data, "meta") is data
    return moved


def test_models_of_pydantic() -> None:
    pydantic: Any = pytest.importorskip("pydantic", minversion="2")
    item = TypeVar("item")

    class Base(pydantic.BaseModel):  # type: ignore[misc]
        model_config = pydantic.ConfigDict(arbitrary_types_allowed=True, extra="allow")

    class Inner(Base):
        model_config = pydantic.ConfigDict(frozen=True)
        x: Any
        name: str = "inner"

    class Outer(Base):
        inner: Inner
        many: list[Inner]
        _hidden: Any = pydantic.PrivateAttr(default=None)

        @pydantic.field_validator("inner")  # type: ignore[untyped-decorator]
        @classmethod
        def seen(cls, value: Any) -> Any:
            calls.append(value)
            return value

    class Root(pydantic.RootModel[list[Any]]):  # type: ignore[misc]
        pass

    class Typed(Base, Generic[item]):
        value: item

    @pydantic.dataclasses.dataclass(config={"arbitrary_types_allowed": True})
    class Data:
        x: Any

    calls: list[Any] = []
    inner = Inner(x=t())
    outer = Outer(inner=inner, many=[inner], more=t())
    outer._hidden = {"a": t()}
    moved = check_moved(outer)
    assert len(calls) == 1
    assert moved.inner is moved.many[0]
    assert moved.inner.name == "inner"
    assert moved.more.device.type == moved._hidden["a"].device.type == "meta"
    assert moved.model_fields_set == {"inner", "many", "more"}
    moved.name = "new"  # the original knows nothing of it
    assert "name" not in outer.model_fields_set | (outer.model_extra or {}).keys()
    assert check_moved(Root([t()])).root[0].device.type == "meta"
    check_moved(Typed[Any](value=t()))
    made: Any = Data
    check_moved(made(x=t()))
    same = [Inner(x=t())]
    assert tensors_to_device(same, "cpu") is same


@pytest.mark.filterwarnings("ignore")  # pydantic.v1 warns of newer Pythons
def test_models_of_pydantic_v1() -> None:
    v1 = pytest.importorskip("pydantic.v1")

    class Model(v1.BaseModel):  # type: ignore[misc, name-defined]
        x: Any
        _hidden: Any = v1.PrivateAttr(default=None)

    model = Model(x={"a": t()})
    model._hidden = t()
    moved = check_moved(model)
    assert moved._hidden.device.type == "meta"
    assert moved.__fields_set__ == {"x"}
    assert moved.__fields_set__ is not model.__fields_set__


def mixture() -> Any:
    normals = distributions.Independent(distributions.Normal(torch.ones(3, 2), torch.ones(3, 2)), 1)
    weights = distributions.Categorical(logits=torch.ones(3))
    assert weights.probs is not None  # which it computes once, and keeps
    return distributions.MixtureSameFamily(weights, normals)


def transformed(cache_size: int = 0) -> Any:
    steps = [
        distributions.AffineTransform(t(), t(), cache_size=cache_size),
        distributions.ExpTransform(cache_size=cache_size),
        distributions.AffineTransform(t(), t()).inv,
    ]
    made = distributions.TransformedDistribution(distributions.Normal(t(), t()), steps)
    made.rsample()
    return made


DISTRIBUTIONS: dict[str, Callable[[], Any]] = {
    "normal": lambda: distributions.Normal(0.0, t()),
    "multivariate": lambda: distributions.MultivariateNormal(t(), torch.eye(2)),
    "mixture": mixture,
    "transformed": transformed,
    "cached": lambda: transformed(1),
    "gamma": lambda: distributions.Chi2(t()),
    "beta": lambda: distributions.Beta(t(), t()),
    "relaxed": lambda: distributions.RelaxedBernoulli(t(), t() / 2),
    "transform": lambda: distributions.AffineTransform(t(), 1.0),
    "constraint": lambda: distributions.constraints.interval(t(), t()),
}


@pytest.mark.parametrize("make", DISTRIBUTIONS.values(), ids=DISTRIBUTIONS)
def test_distributions(make: Callable[[], Any]) -> None:
    moved = check_moved(make())
    if isinstance(moved, distributions.Beta):  # meta makes no samples of it
        assert moved.mean.device.type == "meta"
    elif isinstance(moved, distributions.Distribution):
        assert moved.sample().device.type == "meta"


def test_an_inverse_is_that_of_the_moved_transform() -> None:
    given = distributions.AffineTransform(t(), t())
    assert given.inv.inv is given
    moved = tensors_to_device([given, given.inv], "meta")
    assert moved[0].inv.inv is moved[0]
    assert moved[0].inv(torch.ones(2, device="meta")).device.type == "meta"
    assert given.inv.inv is given


@pytest.fixture
def np() -> Any:
    return pytest.importorskip("numpy")


@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (2, 0, 3)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_objects(np: Any, shape: tuple[int, ...], order: str) -> None:
    shared = t()
    array = np.empty(shape, dtype=object, order=order)
    for index in np.ndindex(*shape):
        array[index] = [shared, index] if sum(index) % 2 else shared
    (moved,) = tensors_to_device([array], "meta")
    if not array.size:
        assert moved is array
        return
    assert (moved.shape, moved.dtype, moved.strides) == (array.shape, array.dtype, array.strides)
    first = moved[(0,) * len(shape)]
    assert first.device.type == "meta"
    for index in np.ndindex(*shape):
        if sum(index) % 2:
            assert moved[index][0] is first
            assert moved[index][1] == index
        else:
            assert moved[index] is first
            assert array[index] is shared


def test_arrays_in_arrays_and_with_fields(np: Any) -> None:
    inner = np.empty((), dtype=object)
    inner[()] = {"x": t()}
    outer = np.array([None, inner, "text"], dtype=object)
    moved = tensors_to_device(outer, "meta")
    assert moved[1][()]["x"].device.type == "meta"
    assert moved[2] == "text"
    fields = np.zeros(2, dtype=[("a", "f4"), ("deep", [("x", object), ("n", "i4")], (2,))])
    fields["a"] = 1, 2
    fields["deep"]["x"][1, 0] = t()
    moved = tensors_to_device(fields, "meta")
    assert moved["deep"]["x"][1, 0].device.type == "meta"
    assert moved["a"].tolist() == [1, 2]
    assert fields["deep"]["x"][1, 0].device.type == "cpu"


def test_the_way_to_an_element(np: Any) -> None:
    array = np.zeros((2, 2), dtype=[("a", "f4"), ("x", object)])
    array["x"][1, 0] = torch.nn.Linear(1, 1)
    with pytest.raises(TransferError) as caught:
        tensors_to_device([array], "meta")
    assert caught.value.path == "data[0]['x'][1, 0]"


def test_arrays_of_objects_as_tensors(np: Any) -> None:
    array = np.empty(2, dtype=object)
    array[0], array[1] = t(), np.ones(2)
    moved = tensors_to_device([array], "meta", arrays="tensors")[0]
    assert [each.device.type for each in moved] == ["meta", "meta"]
    texts = [np.array(["a", None], dtype=object)]
    assert tensors_to_device(texts, "meta") is texts
    with pytest.raises(TransferError):
        tensors_to_device(texts, "meta", arrays="tensors")
