"""Writers that win their entry in an external manifest store, and are held up before they copy to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from esker.commit.external import SqliteManifestStore


def hold_up_the_winner(monkeypatch: pytest.MonkeyPatch, work: Callable[[], object], *, of: str = "") -> None:
    """Does something, once, right after a writer has put an entry.

    Args:
        monkeypatch: Undoes it after the test.
        work: What others do meanwhile.
        of: How the base URI of the entry ends.
    """
    put = SqliteManifestStore.put_if_not_exists

    def wins(store: SqliteManifestStore, base_uri: str, *args: Any) -> bool:
        won = put(store, base_uri, *args)
        if base_uri.endswith(of):
            monkeypatch.setattr(SqliteManifestStore, "put_if_not_exists", put)
            work()
        return won

    monkeypatch.setattr(SqliteManifestStore, "put_if_not_exists", wins)
