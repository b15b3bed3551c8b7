"""Whether a repository is what it says: ids, references and objects."""

from __future__ import annotations

from collections.abc import Iterator

from .core import RepositoryCore
from .layout import DATA
from .objects import rows, table
from .retention import active_commits, branch_names, expired_ids


def check(core: RepositoryCore) -> Iterator[str]:
    """What is wrong with a repository, one sentence a finding: ids, references and objects of all that counts.

    Example:
        `list(repository.fsck()) == []`
    """
    there = {meta.path for meta in core.store.list(DATA)}
    kept, _ = active_commits(core)
    seen: set[str] = set()
    given_up = expired_ids(core) - {core.head(branch).id for branch in branch_names(core)}
    for commit in kept:
        metarange = commit.meta_range_id
        if commit.id in given_up or not metarange or metarange in seen:
            continue
        seen.add(metarange)
        try:
            core.storage.verify(metarange)
            described = table(core.storage.ranges(metarange)).to_pylist()
        except (ValueError, OSError) as error:
            yield f"commit {commit.id}: {error}"
            continue
        for one in described:
            if one["id"] not in seen:
                seen.add(one["id"])
                yield from _check_range(core, metarange, one, there)


def _check_range(core: RepositoryCore, metarange: str, said: dict[str, object], there: set[str]) -> Iterator[str]:
    try:
        (found,) = table(core.storage.verify(str(said["id"]))).to_pylist()
        if found != said:
            yield f"metarange {metarange}: says {said}, the range is {found}"
        listing = core.storage.list(metarange, from_path=str(said["min_key"]))
        for at, row in enumerate(rows(listing)):
            if at >= int(str(said["count"])):
                break
            entry = row["entry"]
            if entry["address_type"] == "relative" and entry["physical_address"] not in there:
                yield f"range {said['id']}: {row['path']!r} is at {entry['physical_address']}, which is not there"
    except (ValueError, OSError) as error:
        yield f"range {said['id']}: {error}"
