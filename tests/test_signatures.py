"""Arguments have the names and the places that pylance gives them, and what it has a default for needs none."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import lance
import lance.fragment
import lance.udf
import pyarrow as pa
import pytest
from lance.dataset import ScannerBuilder as TheirScannerBuilder

import esker
import esker.fragment
import esker.udf
from esker.exceptions import InvalidArgumentError, UnsupportedError
from esker.scanner import ScannerBuilder

CLASSES: dict[str, tuple[type, type]] = {
    "LanceDataset": (lance.LanceDataset, esker.LanceDataset),
    "MergeInsertBuilder": (lance.MergeInsertBuilder, esker.MergeInsertBuilder),
    "BlobFile": (lance.BlobFile, esker.BlobFile),
    "DeletionFile": (lance.fragment.DeletionFile, esker.fragment.DeletionFile),
    "RowIdMeta": (lance.fragment.RowIdMeta, esker.fragment.RowIdMeta),
    "RowDatasetVersionMeta": (lance.fragment.RowDatasetVersionMeta, esker.fragment.RowDatasetVersionMeta),
    "LanceFragment": (lance.LanceFragment, esker.LanceFragment),
    "ScannerBuilder": (TheirScannerBuilder, ScannerBuilder),
}
REFUSED = {
    "full_text_search",
    "minhash_search",
    "nearest",
    "row_addr_prefilter",
    "substrait_aggregate",
    "with_index_segments",
}
"""Methods that raise `UnsupportedError` whatever they get."""
BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _pairs() -> dict[str, tuple[Callable[..., Any], Callable[..., Any]]]:
    """The methods that both have, by name."""
    return {
        f"{name}.{method}": (getattr(theirs, method), getattr(ours, method))
        for name, (theirs, ours) in CLASSES.items()
        for method in sorted(vars(theirs))
        if not method.startswith("_") and callable(getattr(theirs, method)) and hasattr(ours, method)
        if method not in REFUSED
    }


PAIRS = _pairs() | {
    "dataset": (lance.dataset, esker.dataset),
    "write_dataset": (lance.write_dataset, esker.write_dataset),
    "BatchUDF": (lance.udf.BatchUDF, esker.udf.BatchUDF),
    "LanceDataset": (lance.LanceDataset.__init__, esker.LanceDataset.__init__),
    "MergeInsertBuilder": (lance.MergeInsertBuilder, esker.MergeInsertBuilder),
}


@pytest.mark.parametrize("name", PAIRS)
def test_arguments_have_the_names_and_places_of_pylance(name: str) -> None:
    theirs, ours = (inspect.signature(function).parameters for function in PAIRS[name])
    if any(it.kind is it.VAR_POSITIONAL for it in ours.values()):
        return
    by_place, given = ([it for it in side.values() if it.kind in BY_PLACE] for side in (theirs, ours))
    assert [it.name for it in given][: len(by_place)] == [it.name for it in by_place]
    for there, here in zip(by_place, given, strict=False):
        assert (here.default is here.empty) == (there.default is there.empty), there.name
    assert not [it.name for it in given[len(by_place) :] if it.default is it.empty]


@pytest.mark.parametrize(("module", "make"), [(lance, TheirScannerBuilder), (esker, ScannerBuilder)])
def test_hints_are_given_by_name_or_by_place(module: Any, make: Any, uri: str) -> None:
    builder = make(module.write_dataset(pa.table({"id": range(10)}), uri))
    builder = builder.io_buffer_size(io_buffer_size=1 << 20).late_materialization(late_materialization=True)
    builder = builder.use_scalar_index(use_scalar_index=False).use_scalar_index().prefilter(prefilter=True)
    builder = builder.batch_readahead(nbatches=3).batch_readahead().fragment_readahead(nfragments=2)
    builder = builder.fast_search(flag=False).disable_scoring_autoprojection(disable=True).late_materialization(["id"])
    assert builder.to_scanner().to_table()["id"].to_pylist() == list(range(10))


@pytest.mark.parametrize("module", [lance, esker])
def test_rows_are_asked_for_by_place(module: Any, uri: str) -> None:
    dataset = module.write_dataset(pa.table({"id": range(10), "n": range(10, 20)}), uri)
    asked = (["n"], "id > 3", 3, 1)
    expected = {"n": [15, 16, 17]}
    fragment = dataset.get_fragment(0)
    for it in (dataset, fragment):
        assert it.to_table(*asked).to_pydict() == it.to_pandas(*asked).to_dict("list") == expected
    with_id = {**expected, "_rowid": [5, 6, 7]}
    assert fragment.to_table(*asked, True, False, None, None).to_pydict() == with_id
    assert fragment.to_pandas(*asked, 2, True, False, "lazy", None).to_dict("list") == with_id
    assert dataset.to_pandas(*asked, None, 2, 16, 4, True).to_dict("list") == expected
    assert dataset.to_table(*asked, None, 2, 1 << 20, 16, 4, True).to_pydict() == expected
    assert fragment.to_table(*asked, include_deleted_rows=False, strict_batch_size=True).to_pydict() == expected


@pytest.mark.parametrize("call", [lambda it: it.dataset(), lambda it: it.write_dataset({"a": [1]})])
def test_a_table_without_a_uri_is_an_invalid_argument(call: Callable[[Any], object]) -> None:
    for module in (lance, esker):
        with pytest.raises(ValueError, match="uri"):
            call(module)
    with pytest.raises(InvalidArgumentError, match="expected the uri of a table"):
        call(esker)


def test_what_stands_in_the_place_of_a_namespace_is_refused(uri: str) -> None:
    esker.write_dataset({"a": [1]}, uri)
    before = (None,) * 11
    assert esker.dataset(uri, *before, None, None, {}).count_rows() == 1
    for given in (({"a": "b"},), (None, ["t"])):
        with pytest.raises(UnsupportedError, match="not supported yet"):
            esker.dataset(uri, *before, *given)


def test_an_index_is_not_given_its_details_by_place() -> None:
    by_place: tuple[Any, ...] = ("u", "i", [0], 1, {0}, 0, None, None)
    assert lance.Index(*by_place, None, ("type", b"")).index_details == ("type", b"")
    index: Any = esker.Index
    with pytest.raises(TypeError):
        index(*by_place, ("type", b""))
    assert index(*by_place, index_details=("type", b"")).index_details == ("type", b"")


@pytest.mark.parametrize("module", [lance, esker])
def test_the_function_of_new_columns_is_given_by_name(module: Any, uri: str) -> None:
    dataset = module.write_dataset(pa.table({"a": [1, 2]}), uri)
    schema = pa.schema([("b", pa.int64())])
    function = module.udf.BatchUDF(
        func=lambda batch: pa.record_batch([batch["a"]], schema=schema), output_schema=schema
    )
    dataset.add_columns(function)
    assert dataset.to_table()["b"].to_pylist() == [1, 2]
    assert function.func is not None
