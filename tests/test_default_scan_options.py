"""Options that users chose for scans of their own: they count there, and nowhere else."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, Literal

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import esker
from esker import LanceDataset, LanceOperation

DEFAULTS: list[dict[str, Any]] = [
    {"filter": "id > 2"},
    {"filter": pc.field("id") == 4},
    {"limit": 2},
    {"offset": 3},
    {"offset": 1, "limit": 0},
    {"order_by": ["back"]},
    {"columns": ["name"]},
    {"columns": {"id": "id * 7", "name": "name"}},
    {"with_row_id": True},
    {"with_row_address": True},
    {"with_row_id": True, "include_deleted_rows": True},
    {"batch_size": 1},
    {"batch_size": 2, "strict_batch_size": True},
    {"batch_size_bytes": 1},
    {"scan_in_order": False},
    {"blob_handling": "all_binary"},
    {"filter": "id < 3", "limit": 1, "order_by": ["back"], "columns": ["id"], "with_row_id": True},
]
VERSIONS = ["0.1", "2.0", "2.1", "2.2"]

Change = Callable[[LanceDataset], Any]


def _rows() -> pa.Table:
    return pa.table({"id": range(6), "back": [-i for i in range(6)], "name": list("abcdef")})


def _commit(dataset: LanceDataset, operation: LanceOperation.BaseOperation) -> None:
    LanceDataset.commit(dataset, operation, read_version=dataset.version)


def _update_columns(dataset: LanceDataset) -> None:
    new = pa.table({"id": [1, 5], "name": ["B", "F"]})
    for fragment in dataset.get_fragments():
        dataset = LanceDataset(dataset.uri, default_scan_options=dataset._default_scan_options)
        own = dataset.get_fragment(fragment.fragment_id)
        assert own is not None
        changed, fields = own.update_columns(new, "id")
        _commit(dataset, LanceOperation.Update([], [changed], [], fields, update_mode="rewrite_columns"))


def _merge_columns(dataset: LanceDataset, value: Any) -> None:
    made = [fragment.merge_columns(value) for fragment in dataset.get_fragments()]
    _commit(dataset, LanceOperation.Merge([fragment for fragment, _ in made], made[0][1]))


def _fragment_merge(dataset: LanceDataset) -> None:
    other = pa.table({"id": [1, 5], "new": ["x", "y"]})
    made = [fragment.merge(other, "id") for fragment in dataset.get_fragments()]
    _commit(dataset, LanceOperation.Merge([fragment for fragment, _ in made], made[0][1]))


def _fragment_delete(dataset: LanceDataset) -> None:
    left = [fragment.delete("id in (1, 5)") for fragment in dataset.get_fragments()]
    _commit(dataset, LanceOperation.Delete([fragment for fragment in left if fragment], [], "id in (1, 5)"))


def _upsert(mode: Literal["auto", "rewrite_rows", "rewrite_columns"]) -> Change:
    def change(dataset: LanceDataset) -> Any:
        builder = dataset.merge_insert("id").when_matched_update_all().write_mode(mode)
        return builder.execute(pa.table({"id": [1, 5], "name": ["B", "F"]}))

    return change


def _function(batch: pa.RecordBatch) -> pa.RecordBatch:
    assert batch.schema.names == ["id", "back", "name"]
    return pa.record_batch({"new": pc.multiply(batch["id"], 2)})


CHANGES: dict[str, Change] = {
    "add_columns of an expression": lambda ds: ds.add_columns({"new": "id * 2"}),
    "add_columns of a function": lambda ds: ds.add_columns(_function),
    "add_columns of a stream": lambda ds: ds.add_columns(pa.table({"new": [10 * i for i in range(6)]})),
    "alter_columns": lambda ds: ds.alter_columns({"path": "back", "data_type": pa.int32()}),
    "alter_columns to no nulls": lambda ds: ds.alter_columns({"path": "name", "nullable": False}),
    "merge": lambda ds: ds.merge(pa.table({"id": [1, 5], "new": ["x", "y"]}), "id"),
    "merge by row id": lambda ds: ds.merge(
        pa.table({"_rowid": pa.array([0, 1], pa.uint64()), "new": ["x", "y"]}), "_rowid"
    ),
    "update": lambda ds: ds.update({"back": "id + 100"}, "id in (1, 5)"),
    "update of all": lambda ds: ds.update({"back": "id + 100"}),
    "delete": lambda ds: ds.delete("id in (1, 5)"),
    "drop_columns": lambda ds: ds.drop_columns(["back"]),
    "upsert, rows": _upsert("rewrite_rows"),
    "upsert, columns": _upsert("rewrite_columns"),
    "upsert, auto": _upsert("auto"),
    "upsert of new rows": lambda ds: ds.merge_insert("id").when_not_matched_insert_all().execute(
        pa.table({"id": [5, 9], "back": [0, 0], "name": ["x", "y"]})
    ),
    "replace by source": lambda ds: ds.merge_insert("id").when_matched_update_all().when_not_matched_by_source_delete()
    .execute(pa.table({"id": [1, 5], "back": [0, 0], "name": ["x", "y"]})),
    "fragment merge_columns": lambda ds: _merge_columns(ds, {"new": "id * 2"}),
    "fragment merge_columns of a function": lambda ds: _merge_columns(ds, _function),
    "fragment merge": _fragment_merge,
    "fragment update_columns": _update_columns,
    "fragment delete": _fragment_delete,
    "append": lambda ds: ds.insert(_rows()),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_goes_by_the_version_as_it_is(change: str) -> None:
    made = []
    for number, defaults in enumerate([None, *DEFAULTS]):
        uri = f"memory://defaults-{change}-{number}"
        esker.write_dataset(_rows(), uri, max_rows_per_file=4)
        CHANGES[change](esker.dataset(uri, default_scan_options=defaults))
        made.append(esker.dataset(uri).to_table())
    assert made[0] != _rows()
    for defaults, table in zip(DEFAULTS, made[1:], strict=True):
        assert table.schema == made[0].schema, defaults
        assert table.equals(made[0]), defaults


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("number", range(len(DEFAULTS)))
def test_counts_takes_and_fragments_go_by_the_version_as_it_is(number: int, version: str) -> None:
    defaults, uri = DEFAULTS[number], f"memory://defaults-read-{version}-{number}"
    esker.write_dataset(_rows(), uri, max_rows_per_file=4, data_storage_version=version).delete("id = 0")
    plain, ours = esker.dataset(uri), esker.dataset(uri, default_scan_options=defaults)
    ours = pickle.loads(pickle.dumps(ours)) if "filter" not in defaults else ours
    assert (ours.count_rows(), len(ours), ours.count_rows("id > 3"), ours.count_rows(limit=3)) == (5, 5, 2, 3)
    assert ours.count_rows(pc.field("id") > 3) == 2
    assert ours.take([4, 0]).equals(plain.take([4, 0]))
    assert ours.take_rows([1]).equals(plain.take_rows([1]))
    assert sorted(ours.sample(5)["id"].to_pylist()) == [1, 2, 3, 4, 5]
    ours.validate()
    for mine, other in zip(ours.get_fragments(), plain.get_fragments(), strict=True):
        assert mine.to_table().equals(other.to_table())
        assert (mine.schema, mine.physical_schema, mine.count_rows("id > 3")) == (
            plain.schema,
            plain.schema,
            other.count_rows("id > 3"),
        )
        assert mine.head(1).equals(other.head(1))
        assert mine.take([0]).equals(other.take([0]))


def test_what_changed_between_versions_goes_by_the_version_as_it_is() -> None:
    uri = "memory://defaults-delta"
    esker.write_dataset(_rows(), uri, enable_stable_row_ids=True)
    esker.write_dataset(_rows(), uri, mode="append").update({"back": "7"}, "id = 1")
    for defaults in DEFAULTS:
        delta = esker.dataset(uri, default_scan_options=defaults).delta(begin_version=1, end_version=3)
        found = delta.get_inserted_rows().read_all(), delta.get_updated_rows().read_all()
        assert [table.num_rows for table in found] == [6, 1], defaults
        assert found[0].column_names[:3] == ["id", "back", "name"]


def test_a_clone_is_of_the_version_as_it_is() -> None:
    esker.write_dataset(_rows(), "memory://defaults-clone")
    ours = esker.dataset("memory://defaults-clone", default_scan_options={"filter": "id > 2", "columns": ["id"]})
    assert ours.deep_clone("memory://defaults-deep", 1).to_table().equals(_rows())
    assert ours.shallow_clone("memory://defaults-shallow", 1).to_table().equals(_rows())


@pytest.mark.parametrize(
    "defaults",
    [
        {"filter": "id > 2"},
        {"limit": 2},
        {"offset": 3},
        {"columns": ["name"]},
        {"with_row_id": True},
        {"batch_size": 1},
        {"filter": "id < 4", "limit": 1, "columns": ["id"], "with_row_id": True},
    ],
    ids=str,
)
def test_scans_of_the_users_own_start_from_them_as_in_pylance(defaults: dict[str, Any], uri: str) -> None:
    lance.write_dataset(_rows(), uri, max_rows_per_file=4)
    tables, streams, schemas, heads, slices, frames, counts = [], [], [], [], [], [], []
    for module in (esker, lance):
        dataset = module.dataset(uri, default_scan_options=defaults)
        tables.append(dataset.to_table())
        streams.append(pa.Table.from_batches(list(dataset.to_batches()), dataset.schema))
        schemas.append(dataset.schema)
        heads.append(dataset.head(3))
        slices.append(dataset.slice(0, 2))
        frames.append(pa.Table.from_pandas(dataset.to_pandas()).to_pylist())
        fragment = dataset.get_fragments()[0]
        counts.append((dataset.count_rows(), dataset.count_rows("id > 1"), fragment.count_rows(), dataset.take([1])))
        counts.append(fragment.to_table())
    for found in (tables, streams, schemas, heads, slices, frames):
        assert found[0] == found[1]
    assert counts[:2] == counts[2:]


def test_a_dataset_as_a_source_of_rows_shows_what_its_scans_show(uri: str) -> None:
    esker.write_dataset(_rows(), uri)
    defaults = {"filter": "id > 2", "columns": ["id", "name"]}
    copies = []
    for module, place in ((esker, "ours"), (lance, "theirs")):
        source = module.dataset(uri, default_scan_options=defaults)
        copies.append(module.write_dataset(source, f"{uri}-{place}").to_table())
    assert copies[0].equals(copies[1])
    assert copies[0].column_names == ["id", "name"]
