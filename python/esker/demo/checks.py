"""Compare what was read from the table with what the CSV files say."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from esker.demo.branch import Published
from esker.demo.expected import KEY, ORDER, expected_answers
from esker.demo.questions import Answers


@dataclass(frozen=True)
class Check:
    """One comparison between the source and the table."""

    name: str
    expected: object
    found: object

    @property
    def passed(self) -> bool:
        """Whether both sides agree."""
        return bool(self.expected == self.found)


def like(expected: pa.Table, found: pa.Table) -> pa.Table:
    """Bring ``found`` into the order and types of ``expected``: from a CSV file every integer has 64 bits."""
    if sorted(expected.column_names) != sorted(found.column_names):
        raise ValueError(f"expected the columns {sorted(expected.column_names)}, found {sorted(found.column_names)}")
    return found.select(expected.column_names).cast(expected.schema).sort_by(ORDER)


def differing_columns(expected: pa.Table, found: pa.Table) -> list[str]:
    """The names of the columns in which the two tables differ in any value or null."""
    if expected.num_rows != found.num_rows:
        return list(expected.column_names)
    found = like(expected, found)
    return [name for name in expected.column_names if not expected[name].equals(found[name])]


def check_values(expected: pa.Table, *, through_spark: pa.Table, through_python: pa.Table) -> list[Check]:
    """Every value of every row, by both ways of reading, and the totals a person would ask for."""
    cells = f"{expected.num_rows * expected.num_columns:,} values"
    unique = expected.group_by(KEY).aggregate([]).num_rows
    checks = [
        Check("flights with a key of their own", expected.num_rows, unique),
        Check("rows through Spark", expected.num_rows, through_spark.num_rows),
        Check("rows through Python", expected.num_rows, through_python.num_rows),
        Check(f"differing columns, Spark ({cells})", [], differing_columns(expected, through_spark)),
        Check(f"differing columns, Python ({cells})", [], differing_columns(expected, through_python)),
    ]
    totals = {"distance": "miles flown", "air_time": "minutes in the air", "dep_delay": "minutes of departure delay"}
    for name, unit in totals.items():
        checks.append(Check(f"total {unit}", pc.sum(expected[name]).as_py(), pc.sum(through_python[name]).as_py()))
    nulls = {"departed": "cancelled", "dest_name": "to an unknown airport", "model": "by an unknown plane"}
    for name, meaning in nulls.items():
        checks.append(Check(f"flights {meaning}", expected[name].null_count, through_python[name].null_count))
    return checks


def check_months(expected: pa.Table, rows_at_version: list[int]) -> list[Check]:
    """The rows of each version are those of all the months up to it."""
    flights = {row["values"]: row["counts"] for row in expected["month"].value_counts().to_pylist()}
    running = [sum(flights[earlier] for earlier in range(1, month + 1)) for month in sorted(flights)]
    return [Check("rows of each version", running, rows_at_version)]


def check_taken(expected: pa.Table, numbers: list[int], whole: pa.Table, taken: pa.Table) -> list[Check]:
    """Rows taken at random are those of a scan, in the order asked for, and those of the source."""
    first_at = {number: position for position, number in reversed(list(enumerate(numbers)))}
    distinct = taken.take(sorted(first_at.values()))
    keys = like(expected, distinct).select(KEY)
    wanted = expected.join(keys, KEY, join_type="left semi").sort_by(ORDER)
    same = whole.take(numbers).equals(taken)
    return [
        Check(f"{len(numbers):,} random rows are those of a scan", True, same),
        Check("differing columns, random rows", [], differing_columns(wanted, distinct)),
    ]


def check_answers(expected: pa.Table, answers: Answers) -> list[Check]:
    """Each answer, grouped again with pyarrow."""
    checks = []
    for topic, wanted in expected_answers(expected).items():
        found: pa.Table = getattr(answers, topic)
        key = wanted.column_names[: wanted.column_names.index("flights")]
        found = found.select(wanted.column_names).sort_by([(name, "ascending") for name in key])
        agree = "agrees" if rounded(wanted) == rounded(found) else "differs"
        checks.append(Check(f"answer on {topic}, {wanted.num_rows} groups", "agrees", agree))
    return checks


def check_published(expected: pa.Table, published: Published) -> list[Check]:
    """January is on main, in both tables, and the row that was wrong is not."""
    january = pc.sum(pc.equal(expected["month"], 1)).as_py()
    return [
        Check("the wrong row kept January from main", "1 flight has a negative distance", published.refused),
        Check("rows of January on main, Python", january, published.rows),
        Check("rows of January on main, Spark", january, published.rows_through_spark),
        Check("flights by airline on main", january, published.flights_by_airline),
        Check("findings in the repository's tables", [], published.findings),
    ]


def rounded(table: pa.Table) -> list[list[object]]:
    """The rows, with floats rounded: the last digits of a mean depend on the order of its additions."""
    return [
        [round(value, 9) if isinstance(value, float) else value for value in row.values()] for row in table.to_pylist()
    ]
