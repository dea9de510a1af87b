"""Options of a session: whatever ONNX Runtime has is taken, by its type, and nothing is ignored."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from devicecore import get_providers
from devicecore.device import Device
from devicecore.errors import ModelError
from devicecore.onnx import OnnxModel, session_options
from devicecore.ort import CPU_PROVIDER, SessionSpec
from devicecore.ort.session_attributes import SESSION_ATTRIBUTES, attributes_of, set_attributes
from devicecore.ort.tiny_model import tiny_model

ort = pytest.importorskip("onnxruntime")
X = np.array([[1, -2, 3, 0], [-1, 2, 0, 4]], np.float32)


@pytest.fixture
def device() -> Device:
    return Device("/device:CPU:0", session=SessionSpec(CPU_PROVIDER), frameworks=("onnx",))


def other_value(default: Any) -> Any:
    """Return a value of the type of *default* that is another one."""
    if members := getattr(type(default), "__members__", None):
        return next(member for member in members.values() if member != default)
    if isinstance(default, bool):
        return not default
    return 1 if isinstance(default, int) else "other"


def attributes() -> dict[str, Any]:
    options = ort.SessionOptions()
    return {name: getattr(options, name) for name in attributes_of(options)}


def test_what_stands_in_the_table_is_an_attribute() -> None:
    assert set(SESSION_ATTRIBUTES) <= set(attributes())


@pytest.mark.parametrize("name", sorted(attributes()))
def test_every_attribute_arrives(name: str) -> None:
    value = other_value(attributes()[name])
    options = session_options("cpu", session_options={name: value})
    assert getattr(options, name) == value
    assert OnnxModel(tiny_model(), session_options={name: value}).session_options[name]


@pytest.mark.parametrize("name", sorted(attributes()))
def test_every_attribute_is_checked_by_its_type(name: str) -> None:
    default = attributes()[name]
    wrong = [3.5, None, [1]] if isinstance(default, str) else ["other", -7, 3.5, None, [1]]
    if not isinstance(default, bool):
        wrong.append(True)
    for value in wrong:
        with pytest.raises(ValueError, match=f"{name} is .*; it can be "):
            OnnxModel(tiny_model(), session_options={name: value})


def later_options() -> Any:
    """Return a stand-in for the ``SessionOptions`` of an ONNX Runtime that nobody has yet."""
    values = {"speed": 3, "order": ort.ExecutionMode.ORT_SEQUENTIAL, "tag": "", "eager": False}

    def attribute(name: str) -> property:
        return property(
            lambda self: vars(self)[f"_{name}"],
            lambda self, value: vars(self).update({f"_{name}": value}),
        )

    options = type("SessionOptions", (), {name: attribute(name) for name in values})()
    for name, value in values.items():
        setattr(options, name, value)
    return options


def test_what_a_later_version_adds_is_read_from_its_class() -> None:
    options = later_options()
    entries = {"speed": "5", "order": "parallel", "tag": "t", "eager": "true", "session.x": "1"}
    assert set_attributes(options, entries) == {"session.x": "1"}
    assert (options.speed, options.tag, options.eager) == (5, "t", True)
    assert options.order == ort.ExecutionMode.ORT_PARALLEL
    for name, text in {"speed": "fast", "order": "random", "eager": "perhaps"}.items():
        with pytest.raises(ValueError, match=f"{name} is '{text}'; it can be "):
            set_attributes(options, {name: text})


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("intra_op_threads", "intra_op_num_threads"),
        ("intraOpNumThreads", "intra_op_num_threads"),
        ("Enable_Profiling", "enable_profiling"),
        ("graph_optimisation_level", "graph_optimization_level"),
        ("session.disable_prepaking", "session.disable_prepacking"),
        ("free_dimension_override_by_nam", "free_dimension_override_by_name"),
        ("zzz", "entries look like"),
        ("register_custom_ops_library", r"OnnxModel\(custom_op_libraries="),
        ("add_provider", r"OnnxModel\(provider_options="),
        ("add_initializer", r"call it on devicecore.onnx.session_options\(device\)"),
    ],
)
def test_what_is_unknown_is_refused_with_what_is_near(device: Device, name: str, near: str) -> None:
    model = OnnxModel(tiny_model(), session_options={name: "1"})
    with pytest.raises(ModelError, match=near) as caught:
        device.compute(model, {"x": X})
    assert repr(name) in str(caught.value)


def test_entries_may_be_given_as_their_method_takes_them(device: Device) -> None:
    options = {"add_session_config_entry": {"session.disable_prepacking": True}}
    model = OnnxModel(tiny_model(), session_options=options)
    assert model.session_options == {"session.disable_prepacking": "1"}


def test_a_file_that_the_program_wants_is_written_beside_any_cache(
    device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEVICECORE_CACHE_DIR", str(tmp_path / "cache"))
    file = tmp_path / "optimised.onnx"
    options = {"optimized_model_filepath": file}
    device.compute(OnnxModel(tiny_model(), session_options=options, cache="all"), {"x": X})
    assert file.stat().st_size


# --- free dimensions ------------------------------------------------------------------------------


def free_model() -> bytes:
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", 4]) for n in "xy")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    opset = [helper.make_opsetid("", 13)]
    return bytes(helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString())


@pytest.mark.parametrize(
    "name",
    [
        "free_dimension_override_by_name",
        "add_free_dimension_override_by_name",
        "free_dimension_overrides",
    ],
)
def test_free_dimensions_get_a_size(device: Device, name: str) -> None:
    model = OnnxModel(free_model(), session_options={name: {"batch": 2}})
    assert model.session(device).session.get_inputs()[0].shape == [2, 4]
    again = OnnxModel(free_model(), session_options=model.session_options)
    assert again.session_options == model.session_options
    with pytest.raises(ModelError, match=r"x.*\[2, 4\]"):
        device.compute(model, {"x": np.ones((3, 4), np.float32)})


def test_a_size_of_no_free_dimension_is_refused(device: Device) -> None:
    for value in (-1, 0, "two", 1.5, True):
        with pytest.raises(ValueError, match=r"free_dimension_override_by_name\.batch is "):
            OnnxModel(free_model(), session_options={"free_dimension_overrides": {"batch": value}})
    for wrong in ({3: 4}, "batch", [("batch", 1)]):
        with pytest.raises(TypeError, match="it is a mapping such as"):
            OnnxModel(free_model(), session_options={"free_dimension_overrides": wrong})
    wrong_name = OnnxModel(
        free_model(), session_options={"free_dimension_overrides": {"batches": 1}}
    )
    with pytest.raises(ModelError, match="free dimension 'batches'; did you mean 'batch'"):
        device.compute(wrong_name, {"x": X})


# --- arguments of a wrong kind --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"session_options": {1: 2}}, "session_options has the name 1; names of options are texts"),
        ({"session_options": [("a", "b")]}, "it is a mapping of names to values"),
        ({"session_options": "basic"}, "it is a mapping of names to values"),
        ({"session_options": {"session.x": None}}, "session.x is None; a value is a text"),
        ({"session_options": {"session.x": {}}}, "session.x is {}; a value is a text"),
        ({"provider_options": {1: 2}}, "provider_options has the name 1"),
        ({"provider_options": {CPU_PROVIDER: 2}}, "of CPUExecutionProvider is 2; it is a mapping"),
        ({"provider_options": {CPU_PROVIDER: {1: 2}}}, "of CPUExecutionProvider has the name 1"),
        ({"provider_options": [CPU_PROVIDER]}, "it is a mapping of names to values"),
        ({"custom_op_libraries": None}, r"custom_op_libraries is None; it is a list of paths"),
        ({"custom_op_libraries": 3}, "custom_op_libraries is 3; it is a list of paths"),
        ({"custom_op_libraries": b"lib.so"}, "it is a list of paths"),
        ({"custom_op_libraries": "lib.so"}, r"give a list: \['lib.so'\]"),
        ({"custom_op_libraries": Path("lib.so")}, r"give a list: \['lib.so'\]"),
        ({"custom_op_libraries": [None]}, "has None in it, which is no path of a file"),
        ({"custom_op_libraries": ["a.so", ""]}, "has '' in it, which is no path of a file"),
    ],
)
def test_an_argument_of_a_wrong_kind_is_one_clear_error(
    arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(TypeError, match=said):
        OnnxModel(tiny_model(), **arguments)


@pytest.mark.parametrize("min_nodes", ["0.5", b"1", [], {}, True, float("nan"), 2])
def test_a_share_of_a_wrong_kind_is_one_clear_error(min_nodes: Any) -> None:
    with pytest.raises(ValueError, match=r"min_nodes is .*; it is a share"):
        OnnxModel(tiny_model(), min_nodes=min_nodes)


@pytest.mark.parametrize("threads", [True, "2", [], 2.0])
def test_threads_of_a_wrong_kind_are_one_clear_error(threads: Any) -> None:
    with pytest.raises(ValueError, match=r"threads is .*; it is a whole number"):
        OnnxModel(tiny_model(), threads=threads)


def test_a_folder_is_no_library(device: Device, tmp_path: Path) -> None:
    model = OnnxModel(tiny_model(), custom_op_libraries=[tmp_path])
    with pytest.raises(ModelError, match="it is a folder; give the path of the library inside it"):
        device.compute(model, {"x": X})


def test_a_model_says_by_itself_which_one_it_is(tmp_path: Path) -> None:
    file = tmp_path / "m.onnx"
    file.write_bytes(tiny_model())
    for model in (tiny_model(), bytearray(tiny_model()), file, str(file)):
        assert get_providers("cpu", model=OnnxModel(model)) == [CPU_PROVIDER]
        assert get_providers("cpu", model=model) == [CPU_PROVIDER]  # type: ignore[arg-type]
        assert session_options("cpu", model=OnnxModel(model))
    wrong: Any
    for wrong in (3, [file], object()):
        for ask in (get_providers, session_options):
            with pytest.raises(TypeError, match="a model is a file's path or its bytes, not a"):
                ask("cpu", model=wrong)


# --- unregistered operators -----------------------------------------------------------------------


def model_with(*operators: tuple[str, str], imports: tuple[str, ...] | None = None) -> bytes:
    """Return a model that uses *operators*, the last one inside a branch of an If."""
    names = ["x", *(f"t{number}" for number in range(len(operators)))]
    nodes = [
        helper.make_node(op, [given], [made], domain=domain)
        for (domain, op), given, made in zip(operators, names, names[1:], strict=False)
    ]
    value = helper.make_tensor_value_info
    inner = helper.make_graph(
        [nodes.pop()], "inner", [], [value(names[-1], TensorProto.FLOAT, None)]
    )
    condition = helper.make_node(
        "Constant", [], ["c"], value=helper.make_tensor("c", TensorProto.BOOL, [], [1])
    )
    branch = helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=inner)
    graph = helper.make_graph(
        [*nodes, condition, branch],
        "g",
        [value("x", TensorProto.FLOAT, [2, 4])],
        [value("y", TensorProto.FLOAT, None)],
    )
    domains = dict.fromkeys(domain for domain, _ in operators if domain)
    opsets = [helper.make_opsetid("", 13)]
    opsets += [helper.make_opsetid(name, 1) for name in (domains if imports is None else imports)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())


def test_all_unregistered_operators_are_named(device: Device) -> None:
    data = model_with(
        ("acme.ops", "Foo"),
        ("", "Relu"),
        ("acme.ops", "Bar"),
        ("com.microsoft", "Gelu"),
        ("acme.ops", "Foo"),
        ("ai.onnx.contrib", "Tokenizer"),
    )
    with pytest.raises(ModelError) as caught:
        device.compute(OnnxModel(data), {"x": X})
    text = str(caught.value)
    assert "its operators 'Foo', 'Bar' of the domain 'acme.ops'" in text
    assert "'Tokenizer' of the domain 'ai.onnx.contrib'" in text
    assert "OnnxModel(custom_op_libraries=[path])" in text
    assert "pip install onnxruntime-extensions" in text
    for registered in ("'Relu'", "'Gelu'", "'If'"):
        assert registered not in text


def test_operators_of_several_causes_are_named(device: Device) -> None:
    data = model_with(("acme.ops", "Foo"), ("", "Frob"), ("other", "Bar"), imports=("acme.ops",))
    with pytest.raises(ModelError) as caught:
        device.compute(OnnxModel(data), {"x": X})
    for said in (
        "nobody registered its operator 'Foo' of the domain 'acme.ops'",
        "no operator 'Frob' in the opset that it imports",
        "the operator 'Bar' of the domain 'other', whose version it does not import",
    ):
        assert said in caught.value.reason
