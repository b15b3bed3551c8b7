"""Types of computed columns: `a + 1` has the type of `a`, as with pylance; what does not fit is an error."""

from __future__ import annotations

import pickle
from decimal import Decimal
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import esker
from esker._native.expr import Expression
from esker.delta import DeltaTable, write_deltalake
from esker.exceptions import InvalidArgumentError

_INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
_TYPES = [*_INTEGERS, pa.float16(), pa.float32(), pa.float64()]
_FORMS = [
    "{} + 1",
    "1 + {}",
    "{} * 2",
    "{} - 1",
    "{} / 2",
    "{} % 2",
    "({} + 1) * 2",
    "{} + {}",
    "abs({}) + 1",
    "{} + cast(1 as bigint)",
    "{} + 1 > 3",
]


def _table(tmp_path: Path) -> str:
    uri = str(tmp_path / "t")
    columns = {str(kind): pa.array([3, 4, None], pa.float32()).cast(kind) for kind in _TYPES}
    columns["s"] = pa.array([{"x": 3}, {"x": 4}, None], pa.struct([("x", pa.int16())]))
    esker.write_dataset(pa.table({**columns, "id": [1, 2, 3]}), uri)
    return uri


@pytest.mark.parametrize("form", _FORMS)
def test_types_and_values_are_pylances(tmp_path: Path, form: str) -> None:
    uri = _table(tmp_path)
    for name in [*map(str, _TYPES), "s.x"]:
        columns = {"x": form.replace("{}", name)}
        found = esker.dataset(uri).to_table(columns=columns)
        assert found == lance.dataset(uri).to_table(columns=columns), name
    with_floats = {"x": "float + 1.5", "y": "halffloat * 0.1", "z": "double - 2"}
    assert esker.dataset(uri).to_table(columns=with_floats) == lance.dataset(uri).to_table(columns=with_floats)


@pytest.mark.parametrize("form", ["{} + 1", "1 - {}", "{} * 2", "{} / 2", "{} % 2", "{} + {}"])
@pytest.mark.parametrize("kind", [pa.decimal128(10, 2), pa.decimal128(18, 0), pa.decimal128(38, 10)], ids=str)
def test_integers_beside_decimals_are_decimals_as_with_pylance(tmp_path: Path, form: str, kind: pa.DataType) -> None:
    uri = str(tmp_path / "t")
    values = pa.array([Decimal(3), Decimal(-4), None], kind)
    esker.write_dataset(pa.table({"d": values, "id": [1, 2, 3]}), uri)
    columns = {"x": form.replace("{}", "d")}
    found = esker.dataset(uri).to_table(columns=columns)
    expected = lance.dataset(uri).to_table(columns=columns)
    if kind.precision == 38 and form[3] in "*/%":
        # Both sides' digits would leave no room for those of the result.
        assert found["x"].to_pylist() == expected["x"].to_pylist()
    else:
        assert found == expected


def test_functions_of_dictionaries_have_plain_values(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    words = pa.array(["a", "bb", None, "a"]).dictionary_encode()
    esker.write_dataset(pa.table({"k": words, "s": ["x", "y", "z", None]}), uri)
    columns = {"n": "length(k)", "u": "upper(k)", "k": "k", "c": "coalesce(k, s)"}
    found = esker.dataset(uri).to_table(columns=columns)
    expected = lance.dataset(uri).to_table(columns=columns)
    assert found["n"].type == expected["n"].type == pa.int32()
    assert found["u"].type == pa.string()
    for name in ("k", "c"):
        assert found[name].type == expected[name].type, name
    assert found.to_pydict() == expected.to_pydict()
    dataset = esker.dataset(uri)
    dataset.update({"k": "upper(k)"})
    assert dataset.to_table()["k"].to_pylist() == ["A", "BB", None, "A"]
    assert dataset.schema.field("k").type == words.type


def test_new_columns_have_these_types(tmp_path: Path) -> None:
    uri = _table(tmp_path)
    dataset = esker.dataset(uri)
    dataset.add_columns({"a": "int32 + 1", "b": "uint64 / 2", "c": "float * 0.5", "d": "1 - int8", "e": "s.x * 10"})
    kinds = {"a": pa.int32(), "b": pa.uint64(), "c": pa.float32(), "d": pa.int8(), "e": pa.int16()}
    assert {name: dataset.schema.field(name).type for name in kinds} == kinds
    assert dataset.to_table(columns=["b", "d", "e"]).to_pydict() == {
        "b": [1, 2, None],
        "d": [-2, -3, None],
        "e": [30, 40, None],
    }


def test_literals_that_the_type_does_not_hold_make_it_wider(tmp_path: Path) -> None:
    """pylance refuses them, or wraps below zero."""
    dataset = esker.dataset(_table(tmp_path))
    columns = {"a": "int8 + 300", "b": "int32 / 2.0", "c": "uint8 * -1", "d": "1 - uint16", "e": "float * 1e300"}
    found = dataset.to_table(columns=columns)
    assert found.to_pydict() == {
        "a": [303, 304, None],
        "b": [1.5, 2.0, None],
        "c": [-3, -4, None],
        "d": [-2, -3, None],
        "e": [3e300, 4e300, None],
    }
    assert found.schema.types == [pa.int64(), pa.float64(), pa.int64(), pa.int64(), pa.float64()]


def test_what_does_not_fit_is_an_error_and_wider_within(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    dataset = esker.write_dataset(
        pa.table({"a": pa.array([127, 1], pa.int8()), "u": pa.array([0, 1], pa.uint8())}), uri
    )
    for expression in ("a + 1", "u - 1", "a * 2"):
        with pytest.raises(InvalidArgumentError, match="[Oo]verflow"):
            dataset.to_table(columns={"x": expression})
        with pytest.raises(InvalidArgumentError, match="[Oo]verflow"):
            dataset.add_columns({"x": expression})
    dataset.update({"a": "a * 100 / 100"})
    assert dataset.to_table()["a"].to_pylist() == [127, 1]
    # Conditions are asked of the wider type: no sum wraps.
    assert dataset.count_rows("a + 100 > 200") == 1
    assert dataset.count_rows("u - 1 < 0") == 1


def test_what_is_assigned_is_as_wide_as_it_must_be(tmp_path: Path) -> None:
    uri, delta = str(tmp_path / "t"), str(tmp_path / "d")
    rows = pa.table(
        {
            "b": pa.array([100, 2], pa.int8()),
            "u": pa.array([5, 20], pa.uint8()),
            "f": pa.array([1.1, 3], pa.float32()),
            "w": [0, 0],
            "d": [0.0, 0.0],
        }
    )
    dataset = esker.write_dataset(rows, uri)
    write_deltalake(delta, rows.drop_columns(["u"]))
    for values, wide, doubles in (
        ({"w": "b * 2", "d": "b / 2.0"}, [200, 4], [50.0, 1.0]),
        ({"w": "b + 100", "d": "f * 1.1"}, [200, 102], [1.2100000262260437, 3.3000000000000003]),
    ):
        dataset.update(values)
        DeltaTable(delta).update(values)
        for found in (dataset.to_table(), DeltaTable(delta).to_pyarrow_table()):
            assert found["w"].to_pylist() == wide
            assert found["d"].to_pylist() == doubles
    dataset.update({"w": "u - 10"})
    assert dataset.to_table()["w"].to_pylist() == [-5, 10]
    # And conditions: no literal becomes zero on its way to a narrow type.
    dataset.update({"f": "0.0"})
    assert dataset.count_rows("f = 1e-300") == 0
    assert dataset.count_rows("f < 1e-300") == 2


def test_expressions_of_new_columns_are_pickled_as_such() -> None:
    schema = pa.schema([("a", pa.int8())])
    for made, kind in ((Expression.parse_column, pa.int8()), (Expression.parse_sql, pa.int64())):
        found = pickle.loads(pickle.dumps(made("a + 1", schema)))
        assert pa.field(found).type == kind


def test_rules_are_pickled_as_such() -> None:
    rows = pa.record_batch({"f": pa.array([0.1], pa.float32())})
    for made, equal in ((Expression.parse_rule, False), (Expression.parse_sql, True)):
        found = pickle.loads(pickle.dumps(made("f = 0.1", rows.schema)))
        assert pa.array(found.evaluate(rows)).to_pylist() == [equal]
