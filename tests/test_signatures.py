"""Arguments have the names and the places that pylance gives them, and what it has a default for needs none."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import lance
import lance.file
import lance.fragment
import lance.udf
import pyarrow as pa
import pytest
from lance.dataset import ScannerBuilder as TheirScannerBuilder

import esker
import esker.file
import esker.fragment
import esker.udf
from esker.exceptions import InvalidArgumentError, InvalidTypeError, UnsupportedError
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
ROWS = pa.table({"id": [1, 2]})
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


MISSPELT: dict[str, Callable[[Any, Any, str], object]] = {
    "write_dataset": lambda module, table, uri: module.write_dataset(ROWS, uri + "w", max_row_per_file=1),
    "write_dataset, None": lambda module, table, uri: module.write_dataset(ROWS, uri + "w", bogus=None),
    "insert": lambda module, table, uri: table.insert(ROWS, bogus=1),
    "dataset": lambda module, table, uri: module.dataset(uri, bogus=1),
    "LanceDataset": lambda module, table, uri: module.LanceDataset(uri, bogus=1),
    "commit": lambda module, table, uri: module.LanceDataset.commit(
        uri, module.LanceOperation.Restore(1), read_version=1, bogus=1
    ),
    "commit_batch": lambda module, table, uri: module.LanceDataset.commit_batch(uri, [], bogus=1),
    "scanner": lambda module, table, uri: table.scanner(bogus=1),
    "to_table": lambda module, table, uri: table.to_table(bogus=1),
    "sample": lambda module, table, uri: table.sample(1, bogus=1),
    "upsert": lambda module, table, uri: table.merge_insert("id").when_matched_update_all(bogus=1),
    "write_fragments": lambda module, table, uri: module.fragment.write_fragments(ROWS, uri, commit_message="m"),
    "LanceFragment.create": lambda module, table, uri: module.LanceFragment.create(uri, ROWS, bogus=1),
    "LanceFragment.scanner": lambda module, table, uri: table.get_fragments()[0].scanner(bogus=1),
    "LanceFileWriter": lambda module, table, uri: module.file.LanceFileWriter(uri + "f", ROWS.schema, bogus=1),
    "LanceFileReader": lambda module, table, uri: module.file.LanceFileReader(uri + "f", bogus=1),
}


@pytest.mark.parametrize("module", [lance, esker])
@pytest.mark.parametrize("name", MISSPELT)
def test_an_argument_that_nobody_has_is_a_type_error(name: str, module: Any, uri: str) -> None:
    table = module.write_dataset(ROWS, uri)
    with pytest.raises(TypeError, match="bogus|max_row_per_file|commit_message"):
        MISSPELT[name](module, table, uri)
    assert module.dataset(uri).version == 1


def test_a_misspelt_argument_is_told_the_right_one(uri: str) -> None:
    with pytest.raises(InvalidTypeError, match="'max_row_per_file', did you mean 'max_rows_per_file'"):
        esker.write_dataset(ROWS, uri, max_row_per_file=1)  # type: ignore[call-arg]
    with pytest.raises(InvalidTypeError, match="'bogus', expected one of allow_external_blob_outside_bases, "):
        esker.write_dataset(ROWS, uri, bogus=1)  # type: ignore[call-arg]
    with pytest.raises(UnsupportedError, match="option blob_pack_file_size_threshold is not supported yet"):
        esker.write_dataset(ROWS, uri, blob_pack_file_size_threshold=1)  # type: ignore[call-arg]
