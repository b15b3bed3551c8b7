"""Packs: many commits in one object, so that a history takes few requests.

```
_esker/packs/<8 digits>-<64 hex>     how many commits, and the SHA-256 of the bytes: a JSON list of commits
```

Packs are copies: each commit has an object of its own as well, and a missing pack only costs time. Every few commits a
writer packs the latest ones; eight packs of similar size are joined into one.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ..._native.store import Store
from ...exceptions import CorruptFileError, NotFoundError
from .json_record import decode_json
from .layout import PACKS

PACK_COMMITS = 32
"""Commits that the smallest pack has, about."""
JOINED = 8
"""Packs of one class of size that are joined into one of the next."""
MOST_COMMITS = 1 << 16
"""A pack of so many is not joined with others any more."""
_NAME = re.compile(r"(\d{8})-[0-9a-f]{64}")
_THREADS = 16


class Packs:
    """The packs of one repository.

    Args:
        store: Its root.

    Example:
        `Packs(store).put([commit.to_json() for commit in commits])`
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._read: set[str] = set()

    def paths(self) -> list[str]:
        """Those that there are, the smallest first."""
        return sorted((path for path in self._store.list_paths(PACKS) if size_of(path)), key=lambda p: (size_of(p), p))

    def put(self, commits: list[dict[str, Any]]) -> str:
        """Writes a pack and returns its path."""
        ordered = sorted(commits, key=lambda said: (-said["generation"], said["id"]))
        data = json.dumps(ordered, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        path = f"{PACKS}{len(ordered):08d}-{hashlib.sha256(data).hexdigest()}"
        self._store.put(path, data)
        self._read.add(path)
        return path

    def unread(self) -> list[list[str]]:
        """The paths that were not read, by class of size: small ones first, which hold what is young."""
        classes: dict[int, list[str]] = {}
        for path in self.paths():
            if path not in self._read:
                classes.setdefault(_class(path), []).append(path)
        return [classes[key] for key in sorted(classes)]

    def read(self, paths: Iterable[str]) -> list[tuple[str, list[Any]]]:
        """What some packs hold, side by side; those that were joined into others meanwhile are left out."""
        wanted = list(paths)
        with ThreadPoolExecutor(_THREADS) as threads:
            found = list(threads.map(self._one, wanted))
        self._read.update(wanted)
        return [(path, said) for path, said in zip(wanted, found, strict=True) if said is not None]

    def _one(self, path: str) -> list[Any] | None:
        try:
            data = self._store.get(path)
        except NotFoundError:
            return None
        said = decode_json(data, path, "a list of commits; delete this copy")
        if not isinstance(said, list) or not all(_is_commit(one) for one in said):
            raise CorruptFileError(f"{path}: expected a list of commits; delete this copy", path=path)
        return said

    def join(self, *, everything: bool = False) -> int:
        """Joins packs of like size into larger ones; with `everything`, all into one. How many went.

        The new pack is there before the old ones are deleted. All of them are copies.
        """
        gone = 0
        while True:
            classes: dict[int, list[str]] = {}
            for path in self.paths():
                if everything or size_of(path) < MOST_COMMITS:
                    classes.setdefault(0 if everything else _class(path), []).append(path)
            full = [paths for paths in classes.values() if len(paths) >= (2 if everything else JOINED)]
            if not full:
                return gone
            paths = full[0]
            commits = {said["id"]: said for _, pack in self.read(paths) for said in pack}
            made = self.put(list(commits.values()))
            for path in paths:
                if path != made:
                    self._store.delete(path)
                    gone += 1


def _is_commit(said: Any) -> bool:
    return isinstance(said, dict) and isinstance(said.get("id"), str) and isinstance(said.get("generation"), int)


def size_of(path: str) -> int:
    """How many commits a pack says that it has; 0 for what is no pack.

    Example:
        >>> from esker.repo.refs.commit_packs import size_of
        >>> size_of("_esker/packs/00000032-" + "a" * 64)
        32
    """
    matched = _NAME.fullmatch(path.removeprefix(PACKS))
    return int(matched[1]) if matched else 0


def _class(path: str) -> int:
    size, found = size_of(path), 0
    while size >= PACK_COMMITS * JOINED:
        size //= JOINED
        found += 1
    return found
