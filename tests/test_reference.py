"""The reference pages name all that is public, and the guide leads to them."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
PACKAGES = ("esker", "esker.file", "esker.delta", "esker.repo", "esker.spark", "esker.commit")
GUIDE = sorted(DOCS.glob("*.md"))
ENTRY = re.compile(r"^::: ([\w.]+)$(?:\n    options:\n      heading: ([\w.]+)$)?", re.MULTILINE)


def _page(package: str) -> str:
    return (DOCS / "reference" / f"{package.rpartition('.')[2]}.md").read_text()


def _found(path: str) -> object:
    """What a dotted path leads to, in a module or a class."""
    names = path.split(".")
    for end in range(len(names), 0, -1):
        try:
            found: object = importlib.import_module(".".join(names[:end]))
        except ModuleNotFoundError:
            continue
        for name in names[end:]:
            found = getattr(found, name)
        return found
    raise ImportError(path)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_has_an_entry_in_the_reference(package: str) -> None:
    entries = {heading or path for path, heading in ENTRY.findall(_page(package))}
    public = [name for name in importlib.import_module(package).__all__ if name != "__version__"]
    assert [name for name in public if f"{package}.{name}" not in entries] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_every_entry_of_the_reference_is_there(package: str) -> None:
    for path, _ in ENTRY.findall(_page(package)):
        assert _found(path) is not None


@pytest.mark.parametrize("page", GUIDE, ids=lambda page: page.name)
def test_every_page_of_the_guide_leads_to_the_reference(page: Path) -> None:
    assert re.search(r"\]\(reference/\w+\.md", page.read_text())


def test_every_page_is_in_the_navigation() -> None:
    navigation = (DOCS.parent / "mkdocs.yml").read_text()
    pages = [page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")]
    assert [page for page in pages if not re.search(rf": {re.escape(page)}$", navigation, re.MULTILINE)] == []


def test_names_of_ours_in_the_pages_lead_somewhere() -> None:
    # Of these the first segment is no package: keys of a table's config and of a transaction's properties.
    keys = {
        "esker.application.id",
        "esker.application.version",
        "esker.compression",
        "esker.detached",
        "esker.max_field_id",
        "esker.reverted",
    }
    lost = []
    for page in [*DOCS.rglob("*.md"), *DOCS.parent.glob("*.md")]:
        for path in set(re.findall(r"`(esker(?:\.\w+)+)(?:\([^`]*\))?`", page.read_text())) - keys:
            try:
                _found(path)
            except (ImportError, AttributeError):
                lost.append((page.name, path))
    assert lost == []
