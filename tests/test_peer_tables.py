"""The pages for those who come from a peer name all that the peer has, and tell the truth about what is here.

A section's heading is a module or class of the peer, "Here:" is ours, and each row is one public name of the peer's:
`yes` for the same name here, a name of ours where it differs, `missing` for what is not there or raises
`UnsupportedError`.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import sys
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import deltalake
import lance
import pyarrow as pa
import pytest

import esker
from esker.delta import DeltaTable, write_deltalake
from esker.exceptions import UnsupportedError
from esker.repo import Repository

DOCS = Path(__file__).parent.parent / "docs"
PAGES = ("from-pylance.md", "from-deltalake.md", "from-lakefs.md", "from-delta-spark.md")
ROW = re.compile(r"^\| `(\w+)` \| (yes|missing|`[\w.]+`) \| (.*?) ?\|$", re.MULTILINE)


@dataclass(frozen=True)
class Section:
    """What a page says of one module or class."""

    peer: str
    ours: str | None
    rows: dict[str, tuple[str, str]]


@cache
def _sections(page: str) -> tuple[Section, ...]:
    parts = re.split(r"^## ", (DOCS / page).read_text(), flags=re.MULTILINE)[1:]
    found = []
    for part in parts:
        peer = re.match(r"(?:Modules of )?`([\w.]+)`\n", part)
        if peer is None:
            continue
        ours = re.search(r"^Here: `([\w.]+)`\.$", part, re.MULTILINE)
        rows = {name: (here, note) for name, here, note in ROW.findall(part)}
        assert len(rows) == len(re.findall(r"^\| `", part, re.MULTILINE)), f"a row of {page} has another form"
        heading = part.partition("\n")[0].replace("`", "")
        found.append(Section(heading, ours and ours.group(1), rows))
    return tuple(found)


def _found(path: str) -> Any:
    """What a dotted path leads to; of a property the class of its values. A function may hide a module of its name."""
    names = path.split(".")
    for end in range(len(names), 0, -1):
        try:
            importlib.import_module(".".join(names[:end]))
        except ImportError:
            continue
        found: Any = sys.modules[".".join(names[:end])]
        for name in names[end:]:
            found = getattr(found, name)
        if isinstance(found, property) and found.fget is not None:
            return typing.get_type_hints(found.fget, localns=vars(sys.modules[found.fget.__module__]))["return"]
        return found
    raise ImportError(path)


def _public(peer: Any) -> set[str]:
    """The public names of a class, or those that a module defines or lists."""
    names = {name for name in dir(peer) if not name.startswith("_")}
    if not isinstance(peer, types.ModuleType):
        return names
    own = {
        name
        for name in names
        if getattr(getattr(peer, name), "__module__", None) == peer.__name__
        and not repr(getattr(peer, name)).startswith("typing.")
    }
    return own | set(getattr(peer, "__all__", ()))


def _fields(owner: Any) -> set[str]:
    """What instances of a class have and the class itself has not."""
    found: set[str] = set()
    for base in getattr(owner, "__mro__", ()):
        slots = vars(base).get("__slots__", ())
        found |= {*vars(base).get("__annotations__", ()), *((slots,) if isinstance(slots, str) else slots)}
    return found


def _has(owner: Any, name: str) -> bool:
    if name in _fields(owner):
        return True
    try:
        found = inspect.getattr_static(owner, name) if inspect.isclass(owner) else getattr(owner, name)
    except (AttributeError, UnsupportedError):
        return False
    return not (getattr(found, "__doc__", None) or "").startswith("Raises `UnsupportedError`")


def _refuses(owner: Any, name: str) -> bool:
    """Whether a name is not there, or answers with `UnsupportedError`; or leads to an object all of whose names do."""
    try:
        found = getattr(owner, name)
        if callable(found):
            needed = [
                parameter
                for parameter in inspect.signature(found).parameters.values()
                if parameter.default is parameter.empty
                and parameter.kind not in (parameter.KEYWORD_ONLY, parameter.VAR_KEYWORD)
            ]
            found(*["x"] * len(needed))
            return False
    except (AttributeError, UnsupportedError):
        return True
    names = [name for name in dir(found) if not name.startswith("_")]
    return bool(names) and all(_refuses(found, name) for name in names)


@pytest.fixture(scope="module")
def instances(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One object of each class that has a section of its own, where its class alone does not tell."""
    root = tmp_path_factory.mktemp("peers")
    dataset = esker.write_dataset(pa.table({"id": [1]}), str(root / "t.lance"))
    write_deltalake(root / "d", pa.table({"id": [1]}))
    repository = Repository.create(str(root / "lake"))
    main = repository.branch("main")
    written = main.object("folder/a").upload(b"1")
    change = next(iter(main.uncommitted()))
    head = main.commit("first")
    repository.tag("v1").create("main")
    (root / "elsewhere").mkdir()
    (root / "elsewhere" / "b").write_bytes(b"2")
    imports = main.import_data("elsewhere").prefix(str(root / "elsewhere"), "b/")
    imports.run()
    writer = main.object("c").writer("wb")
    writer.discard()
    return {
        "esker.LanceDataset": dataset,
        "esker.LanceFragment": dataset.get_fragments()[0],
        "esker.LanceScanner": dataset.scanner(),
        "esker.dataset.ScannerBuilder": _found("esker.dataset.ScannerBuilder")(dataset),
        "esker.dataset.MergeInsertBuilder": dataset.merge_insert("id"),
        "esker.delta.DeltaTable": DeltaTable(root / "d"),
        "esker.repo.Branch": main,
        "esker.repo.Change": change,
        "esker.repo.Commit": head.get_commit(),
        "esker.repo.CommonPrefix": next(iter(repository.ref("main").objects(delimiter="/"))),
        "esker.repo.ImportManager": imports,
        "esker.repo.ImportStatus": imports.status(),
        "esker.repo.ObjectInfo": written.stat(),
        "esker.repo.ObjectReader": written.reader("rb"),
        "esker.repo.ObjectWriter": writer,
        "esker.repo.Reference": repository.ref("main"),
        "esker.repo.Repository": repository,
        "esker.repo.RepositoryProperties": repository.properties,
        "esker.repo.StoredObject": repository.ref("main").object("folder/a"),
        "esker.repo.Tag": repository.tag("v1"),
        "esker.repo.WriteableObject": main.object("folder/a"),
    }


def _named(condition: Callable[[Section], bool]) -> list[Any]:
    return [
        pytest.param(section, id=f"{page}-{section.peer}")
        for page in PAGES
        for section in _sections(page)
        if condition(section)
    ]


@pytest.mark.parametrize("section", _named(lambda section: True))
def test_a_row_tells_the_truth(section: Section, instances: dict[str, Any]) -> None:
    owner = None if section.ours is None else instances.get(section.ours, _found(section.ours))
    for name, (here, note) in section.rows.items():
        if here == "yes":
            assert _has(owner, name), f"{section.ours}.{name} is not there: the row says that it is"
        elif here == "missing":
            assert note, f"{section.peer}.{name}: what to do instead?"
            # Where nothing stands for the module or class, a name of ours that is the same by chance says nothing.
            told = section.ours is None or _refuses(owner, name)
            assert told, f"{section.ours}.{name} is there: the row says that it is missing"
        else:
            assert _found(here.strip("`")) is not None


@pytest.mark.parametrize("section", _named(lambda section: re.match(r"(lance|deltalake)\b", section.peer) is not None))
def test_every_public_name_of_pylance_and_deltalake_has_a_row(section: Section) -> None:
    names = _public(_found(section.peer))
    assert names - set(section.rows) == set(), "what the peer has, and the page not"
    assert set(section.rows) - names == set(), "what the page has, and the peer not"


@pytest.mark.parametrize(
    ("page", "package"),
    [("from-pylance.md", lance), ("from-deltalake.md", deltalake)],
    ids=lambda value: str(value)[:20],
)
def test_every_module_and_class_of_the_peers_has_its_place(page: str, package: types.ModuleType) -> None:
    sections = {section.peer: section for section in _sections(page)}
    told = {name for section in sections.values() for name in section.rows}
    for module in pkgutil.iter_modules(package.__path__):
        path = f"{package.__name__}.{module.name}"
        assert module.name.startswith("_") or path in sections or module.name in told, (
            f"{path} has no section and no row"
        )
    # Of a class without a section the row names what ours lacks.
    for section in sections.values():
        if section.peer.startswith("Modules") or section.ours is None:
            continue
        peer, ours = _found(section.peer), _found(section.ours)
        for name, (here, note) in section.rows.items():
            theirs = getattr(peer, name, None)
            if here != "yes" or not inspect.isclass(theirs) or issubclass(theirs, BaseException | dict):
                continue
            if any(_found(path) is theirs for path in sections if not path.startswith("Modules")):
                continue
            lacks = {member for member in _public(theirs) if not _has(getattr(ours, name), member)}
            told = set(re.findall(r"`(\w+)`", note)) if note.startswith("without ") else set()
            assert told == lacks, f"{section.peer}.{name}: the row says what ours lacks"
