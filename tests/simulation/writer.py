"""Writers of Lance tables: what a seed may let them do."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from uuid import UUID

import pyarrow as pa

import esker
from esker import LanceDataset, LanceOperation
from esker.exceptions import CommitConflictError, CommitStateUnknownError, IOFailedError, NotFoundError
from esker.fragment import write_fragments
from esker.lance.operation import Index
from esker.optimize import Compaction
from tests.simulation import model
from tests.simulation.actor import Actor, Attempt
from tests.simulation.model import Change, Condition, Rows

STAGED = ("data/", "_deletions/", "_indices/")
ON_BRANCHES = ("append", "delete", "update", "upsert", "config", "overwrite", "compact", "plan_and_compact", "batch")
"""What is done on branches, too."""


def table(rows: Rows) -> pa.Table:
    """Rows as a table."""
    return pa.table({"id": pa.array(list(rows), pa.int64()), "n": pa.array(list(rows.values()), pa.int64())})


@dataclass
class Branch:
    """A branch that somebody tried to make."""

    version: int
    """The version that it starts from."""
    made_by: Change
    is_deleted: bool = False
    """Whether somebody tried to delete it."""


class _AtBranch:
    """While it is entered, a writer is at work on a branch."""

    def __init__(self, writer: Writer, uri: str) -> None:
        self._writer, self._uri = writer, uri

    def __enter__(self) -> _AtBranch:
        self._writer.uri = self._uri
        return self

    def __exit__(self, *error: object) -> None:
        self._writer.uri = self._writer.home


class Writer(Actor):
    """Makes changes of every kind to a Lance table."""

    def is_free(self, verb: str, path: str) -> bool:
        """What is done with data, deletion and index files."""
        return path.startswith(STAGED) and verb not in ("list", "delete")

    def _keys(self, count: int) -> Rows:
        rows = {self.next_key + i: self.random.randrange(100) for i in range(count)}
        self.next_key += count
        return rows

    def _condition(self) -> Condition:
        number, part = self.random.choice([2, 3, 5]), self.random.randrange(3)
        return self.random.choice(
            [
                Condition(f"id % {number} = {part}", "modulo", number, part),
                Condition(f"id = {part} or id = 5", "two", 0, part),
                Condition("n > 60", "large"),
                Condition("id >= 1000 and n < 50", "small"),
            ]
        )

    def _append(self, change: Change) -> Attempt:
        rows = self._keys(self.random.randrange(1, 4))
        return partial(model.appended, rows), lambda: esker.write_dataset(table(rows), self.uri, mode="append")

    def _overwrite(self, change: Change) -> Attempt:
        rows = self._keys(3)
        write = lambda: esker.write_dataset(table(rows), self.uri, mode="overwrite", max_rows_per_file=2)  # noqa: E731
        return partial(model.overwritten, rows), write

    def _delete(self, change: Change) -> Attempt:
        holds = self._condition()
        return partial(model.deleted, holds), lambda: esker.dataset(self.uri).delete(holds.sql)

    def _update(self, change: Change) -> Attempt:
        holds, step = self._condition(), self.random.randrange(1, 9)
        update = lambda: esker.dataset(self.uri).update({"n": f"n + {step}"}, where=holds.sql)  # noqa: E731
        return partial(model.updated, holds, step), update

    def _upsert(self, change: Change) -> Attempt:
        # Keys that all writers share, some of which are not there yet.
        source = {key: self.random.randrange(100) for key in self.random.sample(range(10), 2)}

        def upsert() -> None:
            merge = esker.dataset(self.uri).merge_insert("id")
            merge.when_matched_update_all().when_not_matched_insert_all().execute(table(source))

        return partial(model.upserted, source), upsert

    def _config(self, change: Change) -> Attempt:
        key, value = f"k{self.random.randrange(2)}", f"{self.number}.{change.number}"
        return partial(model.configured, key, value), lambda: esker.dataset(self.uri).update_config({key: value})

    def _restore(self, change: Change) -> Attempt:
        latest = esker.dataset(self.uri).version
        version = self.random.randrange(max(1, latest - 3), latest + 1)
        return partial(model.restored, version), lambda: esker.dataset(self.uri, version=version).restore()

    def _commit_append(self, change: Change) -> Attempt:
        dataset = esker.dataset(self.uri)
        rows, version = self._keys(2), dataset.version
        new = table(rows)
        for name in model.computed(dataset.schema.names):
            values = [key * model.factor(name) for key in rows]
            new = new.append_column(name, pa.array(values, dataset.schema.field(name).type))
        fragments = write_fragments(new, dataset)
        self._wait()
        commit = lambda: LanceDataset.commit(self.uri, LanceOperation.Append(fragments), read_version=version)  # noqa: E731
        return partial(model.appended, rows), commit

    def _wait(self) -> None:
        """What is prepared may lie for long before it is committed."""
        self.simulation.schedule.rest(self.number, self.random.choice([0, 0, 10, 40]))

    def _numbered(self, change: Change) -> Attempt:
        """A commit that is made again as long as nobody said that it is there, as a job that is run again."""
        rows, application = self._keys(2), (self.application, change.number)

        def again() -> None:
            for _ in range(3):
                try:
                    version = esker.dataset(self.uri).version
                    fragments = write_fragments(table(rows), self.uri)
                    operation = LanceOperation.Append(fragments)
                    LanceDataset.commit(self.uri, operation, read_version=version, application=application)
                    return
                except CommitConflictError:
                    continue
                except NotFoundError as error:
                    self.simulation.missing(error)
                except OSError as error:
                    # Who slept may find that a clean-up has taken the version after which his own one would be.
                    is_told = isinstance(error, CommitStateUnknownError) or "injected" in str(error)
                    model.require(is_told, f"{change}: {error!r}")
                    if self.dead:
                        self.lives += 1
                        self.dead = False
            raise IOFailedError("injected: given up")

        return partial(model.numbered, rows, *application), again

    def _batch(self, change: Change) -> Attempt:
        first, second = self._keys(1), self._keys(2)
        parts = [write_fragments(table(rows), self.uri, return_transaction=True) for rows in (first, second)]
        return partial(model.appended, {**first, **second}), lambda: LanceDataset.commit_batch(self.uri, parts)

    def _commit_delete(self, change: Change) -> Attempt | None:
        """A whole fragment goes, as a job says that looked at the table before."""
        dataset = esker.dataset(self.uri)
        fragments = dataset.get_fragments()
        if not fragments:
            return None
        gone = self.random.choice(fragments)
        keys = set(gone.to_table(columns=["id"])["id"].to_pylist())
        self._wait()
        operation = LanceOperation.Delete([], [gone.fragment_id], "all of a fragment")
        commit = lambda: LanceDataset.commit(self.uri, operation, read_version=dataset.version)  # noqa: E731
        return partial(model.deleted_keys, keys), commit

    def _rewrite(self, change: Change) -> Attempt | None:
        """Two fragments become one."""
        dataset = esker.dataset(self.uri)
        fragments = dataset.get_fragments()[:2]
        if len(fragments) < 2:
            return None
        rows = pa.concat_tables([fragment.to_table() for fragment in fragments])
        if not rows.num_rows:
            return None
        new = write_fragments(rows, self.uri)
        operation = LanceOperation.Rewrite(
            [LanceOperation.RewriteGroup([fragment.metadata for fragment in fragments], new)], []
        )
        return model.same, lambda: LanceDataset.commit(self.uri, operation, read_version=dataset.version)

    def _compact(self, change: Change) -> Attempt | None:
        """All fragments, or two at a time: one version that reserves ids, and one for each group."""
        target = self.random.choice([None, 2, 4])
        if not esker.dataset(self.uri).get_fragments():
            return None
        return model.same, lambda: esker.dataset(self.uri).optimize.compact_files(target_rows_per_fragment=target)

    def _plan_and_compact(self, change: Change) -> Attempt | None:
        """As workers do it: what is rewritten may lie for long before it is committed."""
        dataset = esker.dataset(self.uri)
        tasks = Compaction.plan(dataset, {"target_rows_per_fragment": self.random.choice([3, 100])}).tasks
        if not tasks:
            return None
        results = [task.execute(dataset) for task in tasks]
        self._wait()
        return model.same, lambda: Compaction.commit(esker.dataset(self.uri), results)

    def _tag(self, change: Change) -> Attempt:
        dataset, name = esker.dataset(self.uri), f"t{self.number}-{change.number}"
        version = dataset.version
        return model.same, lambda: dataset.tags.create(name, version)

    def _branch(self, change: Change) -> Attempt:
        """A branch of the version that is the newest one now."""
        dataset, name = esker.dataset(self.uri), f"b{self.number}-{change.number}"
        self.simulation.branches[name] = Branch(dataset.version, change)
        return model.same, lambda: dataset.create_branch(name)

    def _on_branch(self, change: Change) -> Attempt | None:
        """A change of another kind, to a branch that anybody made."""
        names = sorted(esker.dataset(self.uri).branches.list())
        if not names:
            return None
        change.branch, change.kind = self.random.choice(names), self.random.choice(ON_BRANCHES)
        with self._at_branch(change.branch) as branch:
            prepared: Attempt | None = getattr(self, "_" + change.kind)(change)
        if prepared is None:
            return None
        expected, attempt = prepared

        def on_branch() -> None:
            with branch:
                attempt()

        return expected, on_branch

    def _at_branch(self, name: str) -> _AtBranch:
        return _AtBranch(self, f"{self.home}/tree/{name}")

    def _delete_branch(self, change: Change) -> Attempt | None:
        """Others may be at work on it."""
        dataset = esker.dataset(self.uri)
        names = sorted(dataset.branches.list())
        if not names:
            return None
        name = self.random.choice(names)
        # Whether it is gone or not: nothing can be told of it any more.
        self.simulation.branches[name].is_deleted = True
        return model.same, lambda: dataset.branches.delete(name)

    def _reserve(self, change: Change) -> Attempt:
        version = esker.dataset(self.uri).version
        operation = LanceOperation.ReserveFragments(2)
        return model.same, lambda: LanceDataset.commit(self.uri, operation, read_version=version)

    def _add_column(self, change: Change) -> Attempt:
        name = f"c{self.number}_{change.number}"
        return partial(model.with_column, name), lambda: esker.dataset(self.uri).add_columns(pa.field(name, pa.int64()))

    def _add_computed(self, change: Change) -> Attempt:
        """A column whose name says what its values must be, whoever reads them under it."""
        factor = self.random.randrange(2, 10)
        name = f"i{self.number}_{change.number}x{factor}"
        return partial(model.with_column, name), lambda: esker.dataset(self.uri).add_columns({name: f"id * {factor}"})

    def _cast(self, change: Change) -> Attempt | None:
        names = model.computed(esker.dataset(self.uri).schema.names)
        if not names:
            return None
        name, type_ = self.random.choice(names), self.random.choice([pa.int32(), pa.int64()])
        return model.same, lambda: esker.dataset(self.uri).alter_columns({"path": name, "data_type": type_})

    def _replace(self, change: Change) -> Attempt | None:
        """Another file in the place of one that holds a column."""
        dataset = esker.dataset(self.uri)
        ids = {field.id(): field.name() for field in dataset.lance_schema.fields()}
        found = [
            (fragment, ids[file.fields[0]])
            for fragment in dataset.get_fragments()
            for file in fragment.metadata.files
            if len(file.fields) == 1 and ids.get(file.fields[0], "").startswith("i")
        ]
        found = [(fragment, name) for fragment, name in found if model.computed([name])]
        if not found:
            return None
        fragment, name = self.random.choice(found)
        keys = fragment.to_table(columns=["id"])["id"].to_pylist()
        values = pa.array([key * model.factor(name) for key in keys], dataset.schema.field(name).type)
        changed, _ = fragment.update_columns(pa.table({"id": pa.array(keys, pa.int64()), name: values}), "id")
        group = LanceOperation.DataReplacementGroup(fragment.fragment_id, changed.files[-1])
        operation = LanceOperation.DataReplacement([group])
        return model.same, lambda: LanceDataset.commit(self.uri, operation, read_version=dataset.version)

    def _index(self, change: Change) -> Attempt:
        """An index as another library commits it: its files are none of the table's business."""
        dataset = esker.dataset(self.uri)
        covered = {fragment.fragment_id for fragment in dataset.get_fragments()}
        name = f"by_{self.number}_{change.number}"
        uuid = str(UUID(int=self.random.getrandbits(128), version=4))
        operation = LanceOperation.CreateIndex([Index(uuid, name, [0], dataset.version, covered, 0)], [])
        return model.same, lambda: LanceDataset.commit(self.uri, operation, read_version=dataset.version)

    def _drop_column(self, change: Change) -> Attempt | None:
        names = [name for name in esker.dataset(self.uri).schema.names if name not in ("id", "n")]
        if not names:
            return None
        name = self.random.choice(names)
        return partial(model.without_column, name), lambda: esker.dataset(self.uri).drop_columns([name])

    def _detached(self, change: Change) -> Attempt | None:
        if getattr(self.simulation, "legacy_copy", False):
            # Names of V1 have no place for it.
            return None
        rows, dataset = self._keys(2), esker.dataset(self.uri)
        before = self._read(dataset)
        fragments = write_fragments(table(rows), self.uri)

        def commit() -> None:
            operation = LanceOperation.Append(fragments)
            made = LanceDataset.commit(self.uri, operation, read_version=dataset.version, detached=True)
            change.detached = made.version, {**before, **rows}

        return model.same, commit

    def _read_rows(self, change: Change) -> Attempt:
        def read() -> None:
            dataset = esker.dataset(self.uri)
            self.simulation.seen.append((dataset.version, self._read(dataset)))

        return model.same, read

    def _cleanup(self, change: Change) -> Attempt:
        def clean() -> None:
            keep = self.random.choice([{"older_than": timedelta(0)}, {"retain_versions": 2}])
            esker.dataset(self.uri).cleanup_old_versions(
                **keep,  # type: ignore[arg-type]
                delete_concurrency=1,
                error_if_tagged_old_versions=False,
            )

        return model.same, clean

    def _read(self, dataset: LanceDataset) -> Rows:
        rows = dataset.to_table(columns=["id", "n"])
        keys = rows["id"].to_pylist()
        model.require(len(set(keys)) == len(keys), f"version {dataset.version}: a row came twice: {sorted(keys)}")
        return dict(zip(keys, rows["n"].to_pylist(), strict=True))
