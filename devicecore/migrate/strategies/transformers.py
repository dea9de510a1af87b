"""Pads the output of transformers' tokenizers with one scatter."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from attrs import field, frozen

from devicecore.migrate.calls.arrays import is_array, is_tensor
from devicecore.migrate.strategies.torch_strategy import Call

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from devicecore.device import Device
    from devicecore.migrate.plan.optimization_plan import Options

_LABELS: Final = (None, "torch")
_HOME: Final = "transformers.tokenization_utils_base"


@frozen
class PadStrategy:
    """Pads what tokenizers made of several texts, where tensors of torch are asked for.

    Attributes:
        name: The dotted name of the method.
    """

    name: str
    runs_original: bool = field(init=False, default=False)

    def compute(
        self,
        device: Device,
        options: Options,
        original: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Return the batch that the tokenizer would make, padded on *device*.

        Raises:
            RefusedCallError: It is none of equally long rows of integers.
        """
        call = Call(self.name, device, options, original)
        call.need(options.kernel in _LABELS, f"there is no kernel {options.kernel!r} for it")
        call.need(device.torch_device, "torch does not know the device")
        return _pad(call, *args, **kwargs)


def _pad(
    call: Call,
    tokenizer: Any,
    encoded_inputs: Any,
    padding: Any = True,
    max_length: int | None = None,
    pad_to_multiple_of: int | None = None,
    padding_side: str | None = None,
    return_attention_mask: bool | None = None,
    return_tensors: Any = None,
    verbose: bool = True,  # noqa: ARG001 - of the lengths that are taken here nothing is said
) -> Any:
    home: Any = sys.modules[_HOME]
    own = getattr(tokenizer, "_pad", None)
    is_usual = getattr(own, "__func__", None) is home.PreTrainedTokenizerBase._pad  # noqa: SLF001 - it is what others override
    call.need(is_usual, "the tokenizer pads in a way of its own")
    names = tokenizer.model_input_names
    rows = _by_key(call, encoded_inputs)
    call.need(names[0] in rows, f"there is no {names[0]}")
    first = _first(rows[names[0]])
    call.need(type(first) is int or is_tensor(first) or is_array(first), "it is given no numbers")
    is_asked = return_tensors == "pt" or (return_tensors is None and is_tensor(first))
    call.need(is_asked, "no tensors of torch are asked for")
    if type(first) is not int:
        rows = {key: home.to_py_obj(each) for key, each in rows.items()}
    is_batch = all(type(row) is list for row in rows[names[0]])
    call.need(is_batch, "it is given one text, or others than lists")
    fills = _fills(call, tokenizer, rows, names, return_attention_mask)
    lengths = [len(row) for row in rows[names[0]]]
    width = _width(call, lengths, padding, max_length, pad_to_multiple_of)
    side = tokenizer.padding_side if padding_side is None else padding_side
    call.need(side in ("left", "right"), f"the side is {side!r}")
    padded = _Padded(call, lengths, width, is_left=side == "left")
    found = {
        key: padded.of(each, fills[key]) if key in fills else each for key, each in rows.items()
    }
    if "attention_mask" in fills and "attention_mask" not in found:
        found["attention_mask"] = padded.mask()
    return home.BatchEncoding(found, tensor_type="pt")  # makes tensors of the others


def _by_key(call: Call, encoded: Any) -> dict[str, list[Any]]:
    """Return the rows of each kind."""
    if isinstance(encoded, (list, tuple)):
        is_batch = encoded and all(isinstance(each, Mapping) for each in encoded)
        call.need(is_batch, "its argument is no list of encodings")
        return {key: [each[key] for each in encoded] for key in encoded[0]}
    call.need(isinstance(encoded, Mapping), f"its argument is a {type(encoded).__name__}")
    rows = dict(encoded.items())
    # Of arrays it would make lists in the program's own mapping.
    columns = [each for each in rows.values() if type(each) is list and each]
    is_batch = len(columns) == len(rows) and all(type(each[0]) in (list, int) for each in columns)
    call.need(is_batch, "its argument is no batch of lists")
    call.need(len({len(each) for each in columns}) == 1, "its batches are of several sizes")
    return rows


def _first(rows: Sequence[Any]) -> Any:
    """Return the first number of some rows, or the first of them that is no list."""
    for row in rows:
        if type(row) is not list:
            return row
        if row:
            return row[0]
    return None


def _fills(
    call: Call,
    tokenizer: Any,
    rows: Mapping[str, Any],
    names: Sequence[str],
    return_attention_mask: bool | None,
) -> dict[str, int]:
    """Return what each kind of rows is filled up with; the others stay as they are."""
    fills = {names[0]: tokenizer.pad_token_id, "token_type_ids": tokenizer.pad_token_type_id}
    fills["special_tokens_mask"] = 1
    has_mask = return_attention_mask
    if has_mask is None:
        has_mask = "attention_mask" in names
    call.need(has_mask or "attention_mask" not in rows, "its masks are to stay as they are")
    fills = {key: fill for key, fill in fills.items() if key in rows}
    if has_mask:
        fills["attention_mask"] = 0
    call.need(all(type(fill) is int for fill in fills.values()), "there is no token to pad with")
    return fills


def _width(call: Call, lengths: list[int], padding: Any, max_length: Any, multiple: Any) -> int:
    """Return how long all rows become."""
    kind = getattr(padding, "value", padding)
    if kind is True or kind == "longest":
        call.need(max_length is None, "a length is given that is not used")
        width = max(lengths)
    else:
        is_length = kind == "max_length" and type(max_length) is int
        call.need(is_length, f"padding is {padding!r}, and max_length {max_length!r}")
        width = max_length
    call.need(multiple is None or (type(multiple) is int and multiple > 0), "it is no multiple")
    width += -width % (multiple or 1)
    call.need(width >= max(lengths), "a row is too long")
    return width


class _Padded:
    """Rows of some lengths, as one tensor."""

    def __init__(self, call: Call, lengths: list[int], width: int, *, is_left: bool) -> None:
        import torch

        self._call = call
        self._lengths = lengths
        # Where new tensors are without us.
        self._home = torch.get_default_device()
        self._place = call.device.torch_device
        counts = torch.tensor(lengths, device=self._place)[:, None]
        places = torch.arange(width, device=self._place)
        self._is_filled = places >= width - counts if is_left else places < counts

    def of(self, rows: list[Any], fill: int) -> Any:
        """Return rows that are filled up with a number."""
        import numpy as np
        import torch

        is_alike = all(type(row) is list for row in rows)
        is_alike = is_alike and [len(row) for row in rows] == self._lengths
        self._call.need(is_alike, "its rows are no lists of the same lengths")
        first = _first(rows)
        flat = np.array(list(chain.from_iterable(rows)))
        is_integers = type(first) is int and flat.dtype == np.int64 and flat.ndim == 1
        self._call.need(is_integers, "its rows are no integers")
        given = torch.from_numpy(flat).to(self._place)
        padded = torch.full(self._is_filled.shape, fill, dtype=given.dtype, device=self._place)
        return padded.masked_scatter_(self._is_filled, given).to(self._home)

    def mask(self) -> Any:
        """Return ones where rows are, and zeros where they are filled up."""
        return self._is_filled.long().to(self._home)
