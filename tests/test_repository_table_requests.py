"""Requests of commits and merges of tables: those that the docs tell, no more of them for ten tables than for one."""

from __future__ import annotations

from pathlib import Path

import pytest

from benches import repo_tables

DOCS = Path(__file__).parents[1] / "docs" / "repository-tables.md"


@pytest.mark.parametrize("format", repo_tables.FORMATS)
def test_the_docs_tell_the_requests_of_tables(format: str) -> None:
    told = DOCS.read_text(encoding="utf-8").splitlines()
    shares: dict[str, set[tuple[int, int]]] = {}
    for title, make, count in repo_tables.CASES:
        found = repo_tables.counted(format, make, count)
        assert repo_tables.line(title, format, found) in told, repo_tables.line(title, format, found)
        shares.setdefault(make.__name__, set()).add(found.row()[:2])
    # However many tables there are, the repository itself is asked for as much.
    assert {name: len(rows) for name, rows in shares.items()} == dict.fromkeys(shares, 1)


def test_a_table_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    repo_tables.main(["--formats", "delta"])
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 2 + len(repo_tables.CASES)
    assert printed[2].startswith("| transaction over 1 table | delta |")
