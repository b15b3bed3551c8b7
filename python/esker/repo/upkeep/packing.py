"""Packs commits and branches' last entries into few objects, so that histories and listings take few requests."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from ..core.repository_core import RepositoryCore
from ..refs import packed_heads
from ..refs.layout import HEADS, branch_of
from ..refs.numbered_log import LogEntry

_THREADS = 16


def pack_refs(core: RepositoryCore) -> int:
    """Packs commits and heads, and compacts logs; how many commits there are. See `Repository.pack_refs`."""
    folders = core.store.list_folders(HEADS)
    now = core.atomic.collecting_time()
    with ThreadPoolExecutor(_THREADS) as threads:
        heads = dict(threads.map(lambda folder: _pack_head(core, folder, now), folders))
    packed_heads.write(core.store, {name: head for name, head in heads.items() if head is not None}, now)
    return core.commits.pack()


def _pack_head(core: RepositoryCore, folder: str, now: float) -> tuple[str, LogEntry | None]:
    name = branch_of(folder)
    log = core.log(name)
    head = log.head()
    if head is not None:
        log.hint(head.number)
        log.compact(now=now)
    return name, head
