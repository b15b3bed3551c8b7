"""Instances of pydantic models as rows, beside pylance."""

from __future__ import annotations

import datetime as dt
import enum
from pathlib import Path
from typing import Any

import lance
import lance.pydantic
import pyarrow as pa
import pydantic
import pytest

import esker
import esker.arrow.pydantic_models
from tests.samples import same

MODULES: dict[Any, Any] = {lance: lance.pydantic, esker: esker.arrow.pydantic_models}


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Inner(pydantic.BaseModel):
    x: int
    y: str | None = None


PLAIN = {"id": int, "name": str, "score": float, "flag": bool, "data": bytes, "day": dt.date, "at": dt.datetime}
ANNOTATIONS: dict[str, Any] = {
    **PLAIN,
    **{f"{name} or none": kind | None for name, kind in PLAIN.items()},
    "texts": list[str],
    "texts or none": list[str] | None,
    "numbers": tuple[int, ...],
    "inner": Inner,
    "inner or none": Inner | None,
    "inners": list[Inner],
}
VALUES: dict[str, list[Any]] = {
    "id": [1, -(2**40)],
    "name": ["a", ""],
    "score": [0.5, 2.0],
    "flag": [True, False],
    "data": [b"\x00", b""],
    "day": [dt.date(2024, 2, 29), dt.date(1969, 12, 31)],
    "at": [dt.datetime(2024, 1, 1, 5, 30), dt.datetime(1960, 1, 1)],
    "texts": [["a"], []],
    "numbers": [(1, 2), ()],
    "inner": [Inner(x=1), Inner(x=2, y="b")],
    "inners": [[Inner(x=1, y="c")], []],
}


@pytest.mark.parametrize("name", ANNOTATIONS)
def test_a_model_makes_the_table_that_pylance_makes_of_it(name: str, tmp_path: Path) -> None:
    model = pydantic.create_model("Row", value=(ANNOTATIONS[name], ...))
    values = VALUES[name.removesuffix(" or none")] + [None] * name.endswith(" or none")
    rows = [model(value=value) for value in values]
    found = []
    for library, module in MODULES.items():
        path = tmp_path / library.__name__
        library.LanceDataset.from_pydantic_model(model, rows, path)
        found.append((module.pydantic_to_schema(model), lance.dataset(path).to_table()))
    (their_schema, theirs), (our_schema, ours) = found
    assert our_schema.equals(their_schema, check_metadata=True)
    same(ours, theirs)


def test_enumerations_have_the_type_of_pylance_and_are_stored_by_their_values(tmp_path: Path) -> None:
    model = pydantic.create_model("Row", color=(Color | None, ...))
    rows = [model(color=color) for color in (Color.BLUE, None, Color.RED)]
    # pylance has no value for them.
    with pytest.raises(pa.ArrowTypeError, match="Color"):
        lance.LanceDataset.from_pydantic_model(model, rows, tmp_path / "theirs")
    esker.LanceDataset.from_pydantic_model(model, rows, tmp_path / "ours")
    found = lance.dataset(tmp_path / "ours").to_table()
    assert found["color"].to_pylist() == ["blue", None, "red"]
    schemas = [module.pydantic_to_schema(model) for module in MODULES.values()]
    assert schemas[0] == schemas[1]


@pytest.mark.parametrize("kind", ["Vector", "MultiVector"])
@pytest.mark.parametrize("nullable", [True, False])
def test_vectors_of_models_are_those_of_pylance(kind: str, nullable: bool, tmp_path: Path) -> None:
    values: list[Any] = [[0.5, 1.0], [2.0, -1.0]] if kind == "Vector" else [[[0.5, 1.0]], [[2.0, -1.0], [0.0, 0.0]]]
    tables = []
    for library, module in MODULES.items():
        model = pydantic.create_model("Row", id=(int, ...), vec=(getattr(module, kind)(2, nullable=nullable), ...))
        rows = [model(id=number, vec=value) for number, value in enumerate(values)]
        path = tmp_path / library.__name__
        library.write_dataset(rows, path)
        tables.append(lance.dataset(path).to_table())
    same(tables[1], tables[0])
    assert tables[1].schema == tables[0].schema


def test_what_is_no_model_is_refused_as_by_pylance(tmp_path: Path) -> None:
    for library in MODULES:
        for model, rows in ((int, [1]), (Inner, [1]), (Inner, [])):
            with pytest.raises((TypeError, ValueError)):
                library.LanceDataset.from_pydantic_model(model, rows, tmp_path / "none")
    assert not (tmp_path / "none").exists()
