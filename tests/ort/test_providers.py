"""The table of providers."""

import pickle

import pytest

from devicecore.names import PROVIDER_TYPES
from devicecore.ort import PROVIDERS, Provider, SessionSpec, provider_named

onnxruntime = pytest.importorskip("onnxruntime")


def test_every_provider_with_a_device_type_is_in_the_table() -> None:
    assert PROVIDER_TYPES.keys() <= PROVIDERS.keys()
    assert {p.name: p.device_type for p in PROVIDERS.values() if p.device_type} == PROVIDER_TYPES


def test_every_provider_that_onnxruntime_knows_is_in_the_table() -> None:
    assert set(onnxruntime.get_all_providers()) <= PROVIDERS.keys()


@pytest.mark.parametrize("known", PROVIDERS.values(), ids=lambda known: known.name)
def test_each_one_says_what_brings_it_or_why_nothing_does(known: Provider) -> None:
    assert known.distributions or known.plugin or known.note
    assert known.name.endswith(("ExecutionProvider", "_ep"))


def test_a_removed_provider_names_its_successor() -> None:
    rocm = provider_named("ROCMExecutionProvider")
    assert rocm.replaced_by == "MIGraphXExecutionProvider"
    assert rocm.device_type == provider_named(rocm.replaced_by).device_type


def test_an_unknown_provider_has_a_name_only() -> None:
    assert provider_named("cpu_ep").distributions == ()
    assert provider_named("cpu_ep").device_type is None


def test_specs_compare_hash_and_pickle() -> None:
    options = {"device_id": "1"}
    spec = SessionSpec("CUDAExecutionProvider", options)
    assert spec == SessionSpec("CUDAExecutionProvider", {"device_id": "1"})
    assert spec != SessionSpec("CUDAExecutionProvider")
    assert hash(spec) == hash(pickle.loads(pickle.dumps(spec)))
    options["device_id"] = "2"
    assert spec.options == {"device_id": "1"}
    assert not spec.is_plugin
    assert SessionSpec("cpu_ep", {}, 0).is_plugin
