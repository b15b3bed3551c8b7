"""Rows of a Delta table as plain Python has them, and what SQL does to them: predicates, updates, merges, at random.

A predicate is SQL and a function of a row that gives true, false or None, as SQL's three values.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa

Row: TypeAlias = "dict[str, Any]"
Truth: TypeAlias = "bool | None"
Test: TypeAlias = "tuple[str, Callable[[Row], Truth]]"
PairTest: TypeAlias = "tuple[str, Callable[[Row, Row], Truth]]"
Values: TypeAlias = "tuple[dict[str, str], Callable[[Row], Row]]"
PairValues: TypeAlias = "tuple[dict[str, str], Callable[[Row, Row], Row]]"

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("p", pa.string()),
        ("day", pa.date32()),
        ("n", pa.int32()),
        ("x", pa.float64()),
        ("d", pa.decimal128(12, 3)),
        ("t", pa.timestamp("us", "UTC")),
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("st", pa.struct([("a", pa.int32()), ("u", pa.string())])),
        ("l", pa.list_(pa.int32())),
    ]
)
LONG = "q" * 70
TEXTS = ["a", "ab", "b c", "x'y", LONG + "a", LONG + "b", "é\U0001f600", "\U0010ffff" * 40]
PARTITIONS = ["a", "b c", "é/:%=", "x'y", None]
DAY = date(1969, 12, 31)
MOMENT = datetime(2024, 1, 1, tzinfo=UTC)


def row_of(numbers: random.Random, key: int, columns: Sequence[str]) -> Row:
    """A row with values of every kind, and nulls."""

    def maybe(value: Any) -> Any:
        return None if numbers.random() < 0.2 else value

    made = {
        "id": key,
        "p": numbers.choice(PARTITIONS),
        "day": maybe(DAY + timedelta(numbers.randrange(4))),
        "n": maybe(numbers.randrange(-3, 4)),
        "x": maybe(numbers.choice([float("nan"), -1.5, 0.5, 2.0, float("inf"), float("-inf")])),
        "d": maybe(Decimal(numbers.randrange(-3000, 3000)).scaleb(-3)),
        "t": maybe(MOMENT + timedelta(microseconds=numbers.choice([0, 1, 1500, 999_999, 10**6]))),
        "s": maybe(numbers.choice(TEXTS)),
        "b": maybe(numbers.random() < 0.5),
        "st": maybe({"a": maybe(numbers.randrange(3)), "u": maybe(numbers.choice(TEXTS[:3]))}),
        "l": maybe([maybe(n) for n in range(numbers.randrange(3))]),
    }
    return {name: made.get(name, key if name in made or numbers.random() < 0.5 else None) for name in columns}


def _order(value: Any) -> Any:
    # SQL's NaN is the largest number, and equal to itself.
    return (1, 0.0) if isinstance(value, float) and math.isnan(value) else (0, value)


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda one, other: _order(one) == _order(other),
    "<>": lambda one, other: _order(one) != _order(other),
    "<": lambda one, other: _order(one) < _order(other),
    "<=": lambda one, other: _order(one) <= _order(other),
    ">": lambda one, other: _order(one) > _order(other),
    ">=": lambda one, other: _order(one) >= _order(other),
}


def compared(one: Any, operator: str, other: Any) -> Truth:
    """A comparison, null where a side is."""
    return None if one is None or other is None else _COMPARE[operator](one, other)


def both(one: Truth, other: Truth) -> Truth:
    """AND."""
    if one is False or other is False:
        return False
    return None if one is None or other is None else True


def either(one: Truth, other: Truth) -> Truth:
    """OR."""
    if one is True or other is True:
        return True
    return None if one is None or other is None else False


def negated(one: Truth) -> Truth:
    """NOT."""
    return None if one is None else not one


def literal(value: Any) -> str:
    """A value as SQL."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, datetime):
        return f"'{value.strftime('%Y-%m-%dT%H:%M:%S.%fZ')}'"
    return f"'{value}'" if isinstance(value, date) else str(value)


def _term(numbers: random.Random, known: Sequence[Row], without: Collection[str]) -> Test:
    names = ["id", "id", "id", "p", "p", "day", "n", "x", "d", "t", "s", "s", "b", "st"]
    name = numbers.choice([name for name in names if name not in without])
    if numbers.random() < 0.12 and name != "st":
        # deltalake knows no columns of structs there.
        negative = numbers.random() < 0.5
        return f"{name} is {'not ' if negative else ''}null", lambda row: (row[name] is None) != negative
    if name == "b":
        return numbers.choice([("b", lambda row: row["b"]), ("b = false", lambda row: negated(row["b"]))])
    if name == "st":
        wanted = numbers.randrange(3)
        return f"st['a'] = {wanted}", lambda row: compared((row["st"] or {}).get("a"), "=", wanted)
    if name == "id" and numbers.random() < 0.5:
        many = numbers.randrange(2, 6)
        rest = numbers.randrange(many)
        return f"id % {many} = {rest}", lambda row: row["id"] % many == rest
    values = [row[name] for row in known if row[name] is not None and not _is_odd(row[name])]
    value: Any = numbers.choice(values) if values else {"id": 3, "n": 1, "x": 0.5, "d": Decimal("1.5")}.get(name)
    if value is None:
        return f"{name} is null", lambda row: row[name] is None
    if name == "d":
        # Such a number is the same one in every library.
        value = Decimal(round(Decimal(value) * 8)) / 8
    if name in ("id", "p", "s", "n") and numbers.random() < 0.3:
        several = list(dict.fromkeys([value, *numbers.sample(values, min(len(values), 2))]))
        listed = ", ".join(map(literal, several))
        return f"{name} in ({listed})", lambda row: None if row[name] is None else row[name] in several
    operator = numbers.choice(list(_COMPARE))
    return f"{name} {operator} {literal(value)}", lambda row: compared(row[name], operator, value)


def _is_odd(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def predicate(numbers: random.Random, known: Sequence[Row], depth: int = 2, without: Collection[str] = ()) -> Test:
    """A predicate over rows, which does not name some columns."""
    kind = numbers.random()
    if depth == 0 or kind < 0.5:
        return _term(numbers, known, without)
    (one, first), (other, second) = (predicate(numbers, known, depth - 1, without) for _ in range(2))
    if kind < 0.7:
        return f"({one}) and ({other})", lambda row: both(first(row), second(row))
    if kind < 0.9:
        return f"({one}) or ({other})", lambda row: either(first(row), second(row))
    return f"not ({one})", lambda row: negated(first(row))


def _plus(value: Any, more: Any) -> Any:
    return None if value is None else value + more


UPDATES: list[Values] = [
    ({"x": "x + 1"}, lambda row: {"x": _plus(row["x"], 1.0)}),
    ({"n": "n + 1", "x": "0.5"}, lambda row: {"n": _plus(row["n"], 1), "x": 0.5}),
    ({"p": "'b c'"}, lambda row: {"p": "b c"}),
    ({"p": "null", "b": "not b"}, lambda row: {"p": None, "b": negated(row["b"])}),
    ({"d": "d + 1"}, lambda row: {"d": _plus(row["d"], Decimal(1))}),
    ({"s": "p"}, lambda row: {"s": row["p"]}),
    ({"s": "s || 'z'"}, lambda row: {"s": _plus(row["s"], "z")}),
    ({"day": "cast('1970-01-01' as date)"}, lambda row: {"day": date(1970, 1, 1)}),
    ({"t": "null", "l": "null"}, lambda row: {"t": None, "l": None}),
    ({"n": "case when x > 0 then 7 else n end"}, lambda row: {"n": 7 if compared(row["x"], ">", 0.0) else row["n"]}),
    ({"st": "named_struct('a', n, 'u', p)"}, lambda row: {"st": {"a": row["n"], "u": row["p"]}}),
]

CONDITIONS: list[PairTest] = [
    ("t.id = s.id", lambda t, s: t["id"] == s["id"]),
    ("t.id = s.id", lambda t, s: t["id"] == s["id"]),
    ("s.id = t.id and t.p = s.p", lambda t, s: both(s["id"] == t["id"], compared(t["p"], "=", s["p"]))),
    ("t.id = s.id and t.n > s.n", lambda t, s: both(t["id"] == s["id"], compared(t["n"], ">", s["n"]))),
    ("t.id = s.id and t.day = s.day", lambda t, s: both(t["id"] == s["id"], compared(t["day"], "=", s["day"]))),
    ("t.id = s.id + 1", lambda t, s: t["id"] == s["id"] + 1),
    ("t.id = s.id and t.id % 2 = 0", lambda t, s: t["id"] == s["id"] and t["id"] % 2 == 0),
    ("t.d = s.d and t.id = s.id", lambda t, s: both(compared(t["d"], "=", s["d"]), t["id"] == s["id"])),
    ("t.x = s.x and t.id = s.id", lambda t, s: both(compared(t["x"], "=", s["x"]), t["id"] == s["id"])),
    (
        "t.t = s.t and t.id <= s.id and t.id >= s.id",
        lambda t, s: both(compared(t["t"], "=", s["t"]), t["id"] == s["id"]),
    ),
    (
        "t.id = s.id and t.st['a'] = s.st['a']",
        lambda t, s: both(t["id"] == s["id"], compared((t["st"] or {}).get("a"), "=", (s["st"] or {}).get("a"))),
    ),
    (
        "t.id = s.id or (t.id = s.id + 1 and s.n > 2)",
        lambda t, s: either(t["id"] == s["id"], both(t["id"] == s["id"] + 1, compared(s["n"], ">", 2))),
    ),
    ("false", lambda t, s: False),
]
ON_BOTH: list[PairTest] = [
    ("s.n > 0", lambda t, s: compared(s["n"], ">", 0)),
    ("t.n > s.n", lambda t, s: compared(t["n"], ">", s["n"])),
    ("t.p = 'a'", lambda t, s: compared(t["p"], "=", "a")),
    ("t.x < s.x or s.b", lambda t, s: either(compared(t["x"], "<", s["x"]), s["b"])),
    ("s.s is null", lambda t, s: s["s"] is None),
]
ON_SOURCE: list[PairTest] = [
    ("s.n > 0", lambda t, s: compared(s["n"], ">", 0)),
    ("s.p = 'a'", lambda t, s: compared(s["p"], "=", "a")),
    ("not s.b", lambda t, s: negated(s["b"])),
]
ON_TARGET: list[PairTest] = [
    ("t.n > 0", lambda t, s: compared(t["n"], ">", 0)),
    ("t.p = 'a'", lambda t, s: compared(t["p"], "=", "a")),
    ("t.id % 3 = 1", lambda t, s: t["id"] % 3 == 1),
    ("t.day is null", lambda t, s: t["day"] is None),
]
ON_MATCH: list[PairValues] = [
    ({"n": "t.n + s.n"}, lambda t, s: {"n": None if s["n"] is None else _plus(t["n"], s["n"])}),
    ({"p": "s.p", "x": "t.x"}, lambda t, s: {"p": s["p"]}),
    ({"s": "s.s", "st": "s.st", "l": "s.l"}, lambda t, s: {name: s[name] for name in ("s", "st", "l")}),
    ({"d": "s.d", "day": "s.day"}, lambda t, s: {"d": s["d"], "day": s["day"]}),
]
BY_SOURCE: list[PairValues] = [
    ({"n": "t.n + 1"}, lambda t, s: {"n": _plus(t["n"], 1)}),
    ({"p": "'a'", "s": "t.p"}, lambda t, s: {"p": "a", "s": t["p"]}),
]
INSERTS: list[PairValues] = [
    ({"id": "s.id", "p": "s.p", "n": "s.n + 1"}, lambda t, s: {"id": s["id"], "p": s["p"], "n": _plus(s["n"], 1)}),
    ({"id": "s.id", "x": "1.5", "s": "s.s"}, lambda t, s: {"id": s["id"], "x": 1.5, "s": s["s"]}),
]


@dataclass(frozen=True)
class MergeClause:
    """A clause: an action, its values (None: all of the source's), a condition."""

    action: str
    values: PairValues | None
    condition: PairTest | None


@dataclass(frozen=True)
class RandomMerge:
    """A merge: its source, and what happens."""

    source: list[Row]
    condition: PairTest
    matched: list[MergeClause]
    inserts: list[MergeClause]
    by_source: list[MergeClause]


def merge(numbers: random.Random, known: Sequence[Row], fresh: Iterable[Row], *, may_double: bool) -> RandomMerge:
    """A merge of some rows that have ids of the table's, and of new ones."""
    source = [*fresh]
    for row in numbers.sample(list(known), min(len(known), numbers.randrange(4))):
        changed = row_of(numbers, row["id"], list(row))
        kept = numbers.sample(list(row), numbers.randrange(len(row)))
        source.append({**changed, **{name: row[name] for name in kept}})
    if source and may_double and numbers.random() < 0.15:
        source.append({**numbers.choice(source), "s": "twice"})
    ids = [row["id"] for row in source]
    if not may_double:
        source = [row for number, row in enumerate(source) if row["id"] not in ids[:number]]

    def one(pool: list[PairTest]) -> PairTest | None:
        return numbers.choice([None, *pool])

    def several(make: Callable[[], MergeClause]) -> list[MergeClause]:
        return [make() for _ in range(numbers.choice([0, 1, 1, 2]))]

    while True:
        made = RandomMerge(
            source,
            numbers.choice(CONDITIONS),
            several(
                lambda: numbers.choice(
                    [
                        MergeClause("delete", None, one(ON_BOTH)),
                        MergeClause("update", None, one(ON_BOTH)),
                        MergeClause("update", numbers.choice(ON_MATCH), one(ON_BOTH)),
                    ]
                )
            ),
            several(lambda: MergeClause("insert", numbers.choice([None, *INSERTS]), one(ON_SOURCE))),
            several(
                lambda: numbers.choice(
                    [
                        MergeClause("delete", None, one(ON_TARGET)),
                        MergeClause("update", numbers.choice(BY_SOURCE), one(ON_TARGET)),
                    ]
                )
            )
            if numbers.random() < 0.4
            else [],
        )
        parts = (made.matched, made.inserts, made.by_source)
        # Spark takes none behind one without a condition.
        if any(parts) and all(clause.condition is not None for part in parts for clause in part[:-1]):
            return made


@dataclass
class Effect:
    """What a change does to rows."""

    deleted: list[Row] = field(default_factory=list)
    updated: list[tuple[Row, Row]] = field(default_factory=list)
    inserted: list[Row] = field(default_factory=list)
    is_error: bool = False

    def __bool__(self) -> bool:
        return bool(self.deleted or self.updated or self.inserted)


def _first(clauses: Sequence[MergeClause], target: Row, source: Row) -> MergeClause | None:
    for clause in clauses:
        if clause.condition is None or clause.condition[1](target, source) is True:
            return clause
    return None


def effect_of(made: RandomMerge, rows: Sequence[Row], columns: Sequence[str]) -> tuple[list[Row], Effect]:
    """The rows after a merge, and what it does; they stay if several rows of the source change one of the table."""
    found, kept = Effect(), []
    seen = [False] * len(made.source)
    empty = dict.fromkeys(columns)

    def changed(clause: MergeClause, target: Row, source: Row) -> Row:
        new = source if clause.values is None else clause.values[1](target, source)
        return {**target, **{name: value for name, value in new.items() if name in target}}

    for row in rows:
        hits = [n for n, source in enumerate(made.source) if made.condition[1](row, source) is True]
        for number in hits:
            seen[number] = True
        acting = [(clause, made.source[n]) for n in hits if (clause := _first(made.matched, row, made.source[n]))]
        if len(acting) > 1 and any(
            clause.action != "delete" or clause.condition is not None or clause is not acting[0][0]
            for clause, _ in acting
        ):
            return list(rows), Effect(is_error=True)
        if not hits:
            undone = _first(made.by_source, row, {})
            acting = [(undone, {})] if undone is not None else []
        if not acting:
            kept.append(row)
        elif acting[0][0].action == "delete":
            found.deleted.append(row)
        else:
            new = changed(*acting[0][:1], row, acting[0][1])
            found.updated.append((row, new))
            kept.append(new)
    for number, source in enumerate(made.source):
        clause = None if seen[number] else _first(made.inserts, empty, source)
        if clause is not None:
            found.inserted.append(changed(clause, empty, source))
    return [*kept, *found.inserted], found
