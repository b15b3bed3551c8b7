"""Random changes, each as text, as a change of a plain table, and as calls of either library."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from tests.fuzzing.conditions import Sql, condition, new_value
from tests.fuzzing.plain_table import COUNTS, Clauses, PlainTable, is_partial
from tests.fuzzing.random_rows import RandomRows

WIDER = {pa.int8(): pa.int64(), pa.int32(): pa.int64(), pa.uint8(): pa.int32(), pa.string(): pa.large_string()}


@dataclass
class Step:
    """A change.

    Attributes:
        kind: What it is called.
        text: What it does, for people.
        plain: Makes it on a plain table, given the history, and returns what the change should say.
        real: Makes it on a dataset of a library, given the copy's number and the history, and returns what it said.
        facts: What tells whether the peer can make it.
    """

    kind: str
    text: str
    plain: Callable[[PlainTable, Any], Any]
    real: Callable[[Any, Any, int, Any], Any]
    facts: dict[str, Any] = field(default_factory=dict)


class Steps:
    """A source of changes."""

    def __init__(self, rng: random.Random, rows: RandomRows) -> None:
        self.random = rng
        self.rows = rows
        self._named = 0

    def draw(self, table: PlainTable, versions: int) -> Step:
        """A change of a table of so many versions."""
        kinds: dict[Callable[..., Step | None], int] = {
            self.append: 3,
            self.delete: 3,
            self.update: 4,
            self.merge: 8,
            self.add: 2,
            self.drop: 1,
            self.alter: 1,
            self.join: 2,
            self.restore: 1,
            self.compact: 1,
            self.delete_in_fragments: 1,
            self.update_columns: 2,
        }
        while True:
            kind = self.random.choices(list(kinds), list(kinds.values()))[0]
            step = kind(table, versions)
            if step is not None:
                return step

    def append(self, table: PlainTable, _: int) -> Step:
        schema = self._some_columns(table.schema, required=True, keys=[])
        rows = self._given(self.rows.rows(schema, self.random.choice([1, 3, 9])))
        return Step(
            "append",
            f"append {rows.to_pylist()}",
            lambda plain, _: plain.append(rows),
            lambda dataset, module, *_: module.write_dataset(_cut(rows, module), dataset, mode="append") and None,
            {"given": schema},
        )

    def delete(self, table: PlainTable, _: int) -> Step:
        where = condition(self.random, table.schema)
        return Step(
            "delete",
            f"delete where {where.text}",
            lambda plain, _: plain.delete(where),
            lambda dataset, *_: dataset.delete(where.text)["num_deleted_rows"],
            {"conditions": [where.text]},
        )

    def update(self, table: PlainTable, _: int) -> Step | None:
        values: dict[str, Sql] = {}
        for it in self.random.sample(list(table.schema), min(2, len(table.schema))):
            may_be_null = self.rows.nulls and (self.rows.null_structs or not pa.types.is_struct(it.type))
            value = new_value(self.random, table.schema, it, nulls=may_be_null)
            if value is not None:
                values[it.name] = value
        if not values:
            return None
        where = condition(self.random, table.schema) if self.random.random() < 0.7 else None
        texts = {name: value.text for name, value in values.items()}
        return Step(
            "update",
            f"update {texts} where {where.text if where else None}",
            lambda plain, _: plain.update(values, where),
            lambda dataset, *_: dataset.update(texts, where.text if where else None)["num_rows_updated"],
            {"values": texts, "conditions": [where.text] if where else []},
        )

    def merge(self, table: PlainTable, _: int) -> Step | None:
        on = self._key(table)
        if on is None:
            return None
        clauses = Clauses(
            on=on,
            matched=self.random.choice(["keep", "update", "update", "update", "update", "delete", "fail"]),
            condition=None,
            insert=self.random.random() < 0.6,
            delete_unmatched=self.random.random() < 0.2,
            delete_filter=None,
        )
        schema = self._some_columns(table.schema, required=clauses.insert, keys=on)
        rows = self.rows.rows(schema, self.random.choice([0, 1, 4, 12]), distinct=self.random.random() < 0.95)
        if clauses.matched == "update" and self.random.random() < 0.3:
            sides = pa.schema(
                [pa.field("source", pa.struct(list(schema))), pa.field("target", pa.struct(list(table.schema)))]
            )
            side = self.random.choice([sides[0], sides[1]])
            clauses.condition = condition(self.random, pa.schema(list(side.type)), prefix=(side.name,))
        if clauses.delete_unmatched and self.random.random() < 0.6:
            clauses.delete_filter = condition(self.random, table.schema)
        if clauses.matched == "keep" and not clauses.insert and not clauses.delete_unmatched:
            return None
        in_place = self._fits_in_place(clauses, schema, table.schema)
        given = self._given(rows)
        told = [text.text for text in (clauses.condition, clauses.delete_filter) if text]

        def real(dataset: Any, module: Any, *_: Any) -> dict[str, int]:
            builder = clauses.applied(dataset.merge_insert(on))
            if in_place:
                builder = builder.write_mode("rewrite_columns")
            said = builder.execute(_cut(given, module))
            return {name: said[name] for name in COUNTS}

        text = f"merge on {on} {clauses.matched} if {clauses.condition and clauses.condition.text}"
        text += f" insert {clauses.insert} delete {clauses.delete_unmatched} if "
        text += f"{clauses.delete_filter and clauses.delete_filter.text} in place {in_place}: "
        text += f"{schema.names} {rows.to_pylist()}"
        return Step(
            "merge",
            text,
            lambda plain, _: plain.merge(rows, clauses),
            real,
            {"given": schema, "clauses": clauses, "conditions": told, "rows": rows, "in place": in_place},
        )

    def add(self, table: PlainTable, _: int) -> Step | None:
        name = self._name()
        if self.rows.nulls and self.random.random() < 0.4:
            it = self.rows.new_field(name)
            return Step(
                "add nulls",
                f"add nulls {it}",
                lambda plain, _: plain.add(it, Sql("", lambda row: None)),
                lambda dataset, *_: dataset.add_columns(it),
            )
        # pylance makes a column that cannot be null of an expression that cannot.
        other = self.random.choice([it for it in table.schema if it.nullable])
        it, value = other.with_name(name), Sql(other.name, lambda row: row[other.name])
        return Step(
            "add",
            f"add {it} = {value.text}",
            lambda plain, _: plain.add(it, value),
            lambda dataset, *_: dataset.add_columns({name: value.text}),
            {"type": it.type},
        )

    def drop(self, table: PlainTable, _: int) -> Step | None:
        others = [name for name in table.schema.names if name != "k"]
        if not others:
            return None
        name = self.random.choice(others)
        return Step(
            "drop",
            f"drop {name}",
            lambda plain, _: plain.drop(name),
            lambda dataset, *_: dataset.drop_columns([name]),
        )

    def alter(self, table: PlainTable, _: int) -> Step | None:
        it = self.random.choice(list(table.schema))
        if it.name != "k" and self.random.random() < 0.5:
            new = self._name()
            return Step(
                "rename",
                f"rename {it.name} to {new}",
                lambda plain, _: plain.rename(it.name, new),
                lambda dataset, *_: dataset.alter_columns({"path": it.name, "name": new}),
            )
        wider = WIDER.get(it.type)
        if wider is None:
            return None

        def plain_cast(plain: PlainTable, _: Any) -> None:
            plain.schema = plain.schema.set(plain.schema.get_field_index(it.name), it.with_type(wider))

        return Step(
            "cast",
            f"cast {it.name} to {wider}",
            plain_cast,
            lambda dataset, *_: dataset.alter_columns({"path": it.name, "data_type": wider}),
        )

    def join(self, table: PlainTable, _: int) -> Step | None:
        if not self.rows.nulls:
            return None
        schema = pa.schema([table.schema.field("k"), self.rows.new_field(self._name())])
        rows = self.rows.rows(schema, self.random.choice([1, 5, 20]), distinct=True)
        return Step(
            "join",
            f"join {rows.to_pylist()}",
            lambda plain, _: plain.join(rows, "k"),
            lambda dataset, *_: dataset.merge(rows, "k"),
            {"given": schema},
        )

    def restore(self, _: PlainTable, versions: int) -> Step | None:
        if versions < 2:
            return None
        number = self.random.randrange(versions - 1)

        def plain(table: PlainTable, history: Any) -> None:
            table.schema, table.rows = history[number].plain.schema, list(history[number].plain.rows)

        return Step(
            "restore",
            f"restore moment {number}",
            plain,
            lambda dataset, _, side, history: dataset.checkout_version(history[number].versions[side]).restore(),
        )

    def compact(self, _: PlainTable, __: int) -> Step | None:
        if self.rows.version == "0.1":
            return None

        def real(dataset: Any, _: Any, *__: Any) -> None:
            import lance

            lance.dataset(dataset.uri).optimize.compact_files()

        return Step("compact", "compact (by pylance)", lambda plain, _: None, real)

    def delete_in_fragments(self, table: PlainTable, _: int) -> Step:
        where = condition(self.random, table.schema)

        def real(dataset: Any, module: Any, *_: Any) -> None:
            left, gone = [], []
            for fragment in dataset.get_fragments():
                kept = fragment.delete(where.text)
                if kept is None:
                    gone.append(fragment.fragment_id)
                else:
                    left.append(kept)
            operation = module.LanceOperation.Delete(left, gone, where.text)
            module.LanceDataset.commit(dataset, operation, read_version=dataset.version)

        return Step(
            "delete in fragments",
            f"delete in fragments where {where.text}",
            lambda plain, _: plain.delete(where) and None,
            real,
            {"conditions": [where.text]},
        )

    def update_columns(self, table: PlainTable, _: int) -> Step | None:
        others = [it for it in table.schema if it.name != "k"]
        if not others:
            return None
        chosen = self.random.choice(others)
        schema = pa.schema([table.schema.field("k"), chosen])
        rows = self.rows.rows(schema, self.random.choice([1, 5]), distinct=True)

        def real(dataset: Any, module: Any, *_: Any) -> None:
            changed, fields = [], []
            for fragment in dataset.get_fragments():
                one, fields = fragment.update_columns(rows, "k")
                changed.append(one)
            operation = module.LanceOperation.Update([], changed, [], fields, update_mode="rewrite_columns")
            module.LanceDataset.commit(dataset, operation, read_version=dataset.version)

        return Step(
            "update columns",
            f"update columns {chosen} {rows.to_pylist()}",
            lambda plain, _: plain.update_columns(rows, "k"),
            real,
            {"given": schema, "empty": not table.rows},
        )

    def _given(self, rows: pa.Table) -> pa.Table:
        """The rows as somebody may give them: text in views."""
        for number, it in enumerate(rows.schema):
            views = {pa.string(): pa.string_view(), pa.binary(): pa.binary_view()}
            if it.type in views and self.random.random() < 0.2:
                view = views[it.type]
                rows = rows.set_column(number, it.with_type(view), rows[it.name].cast(view))
        return rows

    def _name(self) -> str:
        self._named += 1
        return f"n{self._named}"

    def _key(self, table: PlainTable) -> list[str] | None:
        plain = [it.name for it in table.schema if not pa.types.is_nested(it.type) and it.name != "k"]
        if plain and self.random.random() < 0.1:
            return ["k", self.random.choice(plain)]
        return ["k"]

    def _some_columns(self, schema: pa.Schema, *, required: bool, keys: list[str]) -> pa.Schema:
        """The key, and some of the other columns and of their fields; those that must be there if `required`."""
        if self.random.random() < 0.4 or not self.rows.nulls:
            return schema
        kept = [it for it in schema if it.name in keys or (required and self._must(it)) or self.random.random() < 0.7]
        kept = kept or [schema.field("k")]
        if self.random.random() < 0.6:
            kept = [it if it.name in keys else self._part(it, required=required) for it in kept]
        self.random.shuffle(kept)
        return pa.schema(kept)

    def _part(self, it: pa.Field, *, required: bool) -> pa.Field:
        if not pa.types.is_struct(it.type):
            return it
        children = [c for c in it.type if (required and self._must(c)) or self.random.random() < 0.6]
        children = [self._part(child, required=required) for child in children or [it.type.field(0)]]
        self.random.shuffle(children)
        return it.with_type(pa.struct(children))

    def _must(self, it: pa.Field) -> bool:
        """Whether new rows must have a field: what they lack is null."""
        return not it.nullable or (pa.types.is_struct(it.type) and not self.rows.null_structs)

    def _fits_in_place(self, clauses: Clauses, given: pa.Schema, table: pa.Schema) -> bool:
        changes_only = clauses.matched == "update" and not clauses.insert and not clauses.delete_unmatched
        some = len(clauses.on) < len(given) < len(table)
        return changes_only and some and self.random.random() < 0.5


def _cut(rows: pa.Table, module: Any) -> pa.Table:
    """The rows in chunks that start within their buffers, for us: pylance takes no structs within structs that do."""
    half = rows.num_rows // 2
    return pa.concat_tables([rows.slice(0, half), rows.slice(half)]) if module.__name__ == "esker" else rows


def lacks_fields(given: pa.Schema, table: pa.Schema) -> bool:
    """Whether structs of a source lack fields."""
    return any(is_partial(it.type, table.field(it.name).type) for it in given)
