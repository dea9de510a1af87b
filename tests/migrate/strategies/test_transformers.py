"""What tokenizers made of texts, padded: transformers' own where it is installed, and a stand-in.

The stand-in pads in lists, as transformers 5 does, and knows nothing else of tokenizers. It is too
large a package to install for every run of the tests.
"""

from __future__ import annotations

import sys
from collections import UserDict
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from devicecore.errors import RefusedCallError  # noqa: E402 - after torch
from devicecore.migrate import PipelineMigrator  # noqa: E402
from devicecore.migrate.plan.optimization_plan import Options  # noqa: E402
from devicecore.migrate.strategies.transformers import PadStrategy  # noqa: E402
from devicecore.runtime import host_cpu  # noqa: E402

HOME = "transformers.tokenization_utils_base"
NAME = f"{HOME}.PreTrainedTokenizerBase.pad"


class BatchEncoding(UserDict[str, Any]):
    def __init__(self, data: Any, tensor_type: str) -> None:
        super().__init__(data)
        assert tensor_type == "pt"
        for key, value in data.items():
            if not torch.is_tensor(value):
                self[key] = torch.tensor(value)


class PreTrainedTokenizerBase:
    padding_side = "right"
    pad_token_id: Any = 7
    pad_token_type_id = 3
    model_input_names = ("input_ids", "token_type_ids", "attention_mask")

    def pad(
        self,
        encoded_inputs: Any,
        padding: Any = True,
        max_length: Any = None,
        pad_to_multiple_of: Any = None,
        padding_side: Any = None,
        return_attention_mask: Any = None,
        return_tensors: Any = None,
        verbose: bool = True,
    ) -> Any:
        if isinstance(encoded_inputs, (list, tuple)):
            keys = list(encoded_inputs[0])
            encoded_inputs = {key: [each[key] for each in encoded_inputs] for key in keys}
        columns = {key: to_py_obj(each) for key, each in encoded_inputs.items()}
        if padding in (True, "longest"):
            max_length = max(map(len, columns["input_ids"]))
        if pad_to_multiple_of:
            max_length += -max_length % pad_to_multiple_of
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        side = padding_side or self.padding_side
        has_mask = return_attention_mask is None or return_attention_mask
        rows = [self._pad(row, max_length, side, has_mask=has_mask) for row in rows]
        return BatchEncoding({key: [row[key] for row in rows] for key in rows[0]}, "pt")

    def _pad(self, row: Any, length: int, side: str, *, has_mask: bool) -> Any:
        missing = length - len(row["input_ids"])
        if has_mask:
            row.setdefault("attention_mask", [1] * len(row["input_ids"]))
        fills = {"input_ids": self.pad_token_id, "token_type_ids": self.pad_token_type_id}
        fills |= {"attention_mask": 0, "special_tokens_mask": 1}
        for key in row.keys() & fills:
            fill = [fills[key]] * missing
            row[key] = row[key] + fill if side == "right" else fill + row[key]
        return row


def to_py_obj(value: Any) -> Any:
    if torch.is_tensor(value) or isinstance(value, np.ndarray):
        return value.tolist()
    return [to_py_obj(each) for each in value] if isinstance(value, list) else value


class Derived(PreTrainedTokenizerBase):
    def _pad(self, row: Any, length: int, side: str, *, has_mask: bool) -> Any:
        return row


def stand_in(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a tokenizer that only pads, of a module in the place of transformers'."""
    module: Any = ModuleType(HOME)
    module.PreTrainedTokenizerBase = PreTrainedTokenizerBase
    module.BatchEncoding, module.to_py_obj = BatchEncoding, to_py_obj
    monkeypatch.setitem(sys.modules, HOME, module)
    return PreTrainedTokenizerBase()


@pytest.fixture
def tokenizer(monkeypatch: pytest.MonkeyPatch) -> Any:
    return stand_in(monkeypatch)


def padded(tokenizer: Any, *args: Any, device: Any = None, **how: Any) -> Any:
    """Return what the strategy gives."""
    strategy = PadStrategy(NAME)
    original = PreTrainedTokenizerBase.pad
    options = Options(kernel="torch")
    return strategy.compute(device or host_cpu(), options, original, (tokenizer, *args), how)


def assert_same(found: Any, expected: Any) -> None:
    assert type(found) is type(expected)
    assert list(found) == list(expected)
    for key in expected:
        assert found[key].dtype == expected[key].dtype
        assert found[key].device == expected[key].device
        assert found[key].equal(expected[key])


def encodings(lengths: list[int], keys: set[str]) -> list[dict[str, Any]]:
    """Return what a tokenizer makes of texts of some lengths."""
    return [
        {"input_ids": list(range(100, 100 + length)), "label": place, "weights": [0.5, place]}
        | {key: [(place + n) % 2 for n in range(length)] for key in sorted(keys)}
        for place, length in enumerate(lengths)
    ]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.integers(0, 12), min_size=1, max_size=6).filter(lambda found: found[0] > 0),
    st.sets(st.sampled_from(["attention_mask", "token_type_ids", "special_tokens_mask"])),
    st.sampled_from(["rows", "columns", "tensors", "arrays"]),
    st.sampled_from([{}, {"padding": "longest"}, {"padding": "max_length", "max_length": 13}]),
    st.fixed_dictionaries(
        {},
        optional={
            "pad_to_multiple_of": st.integers(1, 9),
            "padding_side": st.sampled_from(["left", "right"]),
            "verbose": st.booleans(),
        },
    ),
)
def test_any_batch(
    tokenizer: Any, lengths: Any, keys: Any, kind: str, how: dict[str, Any], more: dict[str, Any]
) -> None:
    rows: Any = encodings(lengths, keys)
    if kind == "columns":
        rows = {key: [row[key] for row in rows] for key in rows[0]}
    elif kind in ("tensors", "arrays"):
        make: Any = torch.tensor if kind == "tensors" else np.array
        kinds: Any = {"dtype": torch.int32 if kind == "tensors" else np.int64}
        rows = [
            {key: make(value, **({} if key == "weights" else kinds)) for key, value in row.items()}
            for row in rows
        ]
    how = {"return_tensors": "pt", **how, **more}
    before = repr(rows)
    found = padded(tokenizer, rows, **how)
    assert repr(rows) == before
    assert_same(found, tokenizer.pad(rows, **how))


def test_batches_without_masks(tokenizer: Any) -> None:
    rows = encodings([3, 1], {"token_type_ids"})
    how = {"return_attention_mask": False, "return_tensors": "pt"}
    assert_same(padded(tokenizer, rows, **how), tokenizer.pad(rows, **how))
    assert "attention_mask" not in padded(tokenizer, rows, **how)
    tensors = [{"input_ids": torch.tensor([1, 2])}, {"input_ids": torch.tensor([3])}]
    assert padded(tokenizer, tensors)["attention_mask"].tolist() == [[1, 1], [1, 0]]


def refused(reason: str, tokenizer: Any, *args: Any, **how: Any) -> None:
    with pytest.raises(RefusedCallError, match=reason):
        padded(tokenizer, *args, **{"return_tensors": "pt", **how})


def test_what_is_left_to_the_tokenizer(tokenizer: Any) -> None:
    rows = encodings([3, 1], set())
    refused("pads in a way of its own", Derived(), rows)
    refused("no tensors of torch are asked for", tokenizer, rows, return_tensors="np")
    refused("no tensors of torch are asked for", tokenizer, rows, return_tensors=None)
    refused("given one text", tokenizer, {"input_ids": [1, 2]})
    refused("a row is too long", tokenizer, rows, padding="max_length", max_length=2)
    refused("padding is False", tokenizer, rows, padding=False)
    refused("a length is given", tokenizer, rows, max_length=9)
    refused("the side is 'up'", tokenizer, rows, padding_side="up")
    refused("there is no input_ids", tokenizer, [{"ids": [1]}])
    refused("no list of encodings", tokenizer, [])
    refused("no numbers", tokenizer, [{"input_ids": ["a"]}])
    refused("no integers", tokenizer, [{"input_ids": [1, 0.5]}])
    refused("no numbers", tokenizer, [{"input_ids": [True, False]}])
    refused("same lengths", tokenizer, [{"input_ids": [1], "attention_mask": [1, 1]}])
    masked = encodings([3, 1], {"attention_mask"})
    refused("stay as they are", tokenizer, masked, return_attention_mask=False)
    refused("several sizes", tokenizer, {"input_ids": [[1], [2]], "token_type_ids": [[1]]})
    refused("no batch of lists", tokenizer, {"input_ids": torch.ones(2, 2, dtype=torch.int64)})
    tokenizer.pad_token_id = None
    refused("no token to pad with", tokenizer, rows)


# --- transformers itself --------------------------------------------------------------------------


def tokenizer_of_transformers() -> Any:
    """Return a tokenizer that has learnt a few words."""
    reason = "transformers and tokenizers are not installed"
    transformers: Any = pytest.importorskip("transformers", reason=reason)
    tokenizers: Any = pytest.importorskip("tokenizers", reason=reason)
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel(unk_token="?"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    special = tokenizers.trainers.WordLevelTrainer(special_tokens=["?", "[PAD]"])
    words.train_from_iterator(TEXTS, special)
    made = transformers.PreTrainedTokenizerFast
    return made(tokenizer_object=words, pad_token="[PAD]", unk_token="?")


TEXTS = ["a cat sat on the mat", "dogs run", "one two three four five six seven"]
HOWS: list[dict[str, Any]] = [
    {},
    {"padding": "max_length", "max_length": 12, "padding_side": "left"},
    {"pad_to_multiple_of": 5},
]


@pytest.mark.parametrize("of", ["PreTrainedTokenizerBase", "PreTrainedTokenizerFast"])
@pytest.mark.parametrize("how", HOWS)
def test_a_tokenizer_of_transformers(of: str, how: dict[str, Any]) -> None:
    tokenizer = tokenizer_of_transformers()
    rows = [{**tokenizer(text), "label": n} for n, text in enumerate(TEXTS)]
    tensors = [{key: torch.tensor(value) for key, value in row.items()} for row in rows]
    calls = [(rows, {"return_tensors": "pt"}), (tensors, {}), (tokenizer(TEXTS), {})]
    plan = {f"transformers.{of}/pad": {"device": "cpu", "kernel": "torch"}}
    for given_rows, more in calls:
        both = {"return_tensors": "pt", **how, **more}
        expected = tokenizer.pad(given_rows, **both)
        for verify in (0, 1):
            with PipelineMigrator(plan, strict=True, verify=verify) as migrator:
                found = tokenizer.pad(given_rows, **both)
            assert [row.migrated for row in migrator.report().rows] == [1]
            assert_same(found, expected)


def test_a_collator_of_transformers() -> None:
    tokenizer = tokenizer_of_transformers()
    collate = pytest.importorskip("transformers").DataCollatorWithPadding(tokenizer)
    rows = [{**tokenizer(text), "label": n} for n, text in enumerate(TEXTS)]
    expected = collate(rows)
    plan = {"transformers.PreTrainedTokenizerBase/pad": {"device": "cpu", "kernel": "torch"}}
    with PipelineMigrator(plan, strict=True) as migrator:
        assert_same(collate(rows), expected)
        lists = tokenizer.pad(rows[:1], return_tensors="pt")
    assert [row.migrated for row in migrator.report().rows] == [2]
    assert lists["input_ids"].shape == (1, 6)
