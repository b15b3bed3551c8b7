"""Where a repository keeps what, and which names are names.

```
_lakefs/<64 hex>                             ranges and metaranges, as lakeFS has them
data/<partition>/<id>                        objects that were written through the repository
_esker/repository.json                       format version, id, default branch
_esker/refs/heads/<name>/<20 digits>         the log of a branch; `/` in its name is %2F
_esker/refs/tags/<name>                      one object a tag
_esker/settings/<20 digits>                  the log of the settings
_esker/refs/heads/<name>/hint                a number from which to look for its last entry
_esker/commits/<64 hex>                      one object a commit
_esker/packs/<8 digits>-<64 hex>             many commits, once more
_esker/refs/packed_heads.json                the last entries of all branches, as they were some time ago
_esker/gc/<32 hex>                           what a garbage collection is about to delete
_esker/expired/<32 hex>                      ids of commits that a garbage collection has expired
_esker/expired.json                          the same of earlier releases
_lakefs/esker_expired.json                   the same beside a dump of refs
_esker/clock                                 {}, put by those who ask the store for the time
```
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

from ...exceptions import InvalidArgumentError

OWN = "_esker/"
"""What is ours alone: the rest is laid out as lakeFS does it."""
REPOSITORY = "_esker/repository.json"
HEADS = "_esker/refs/heads/"
TAGS = "_esker/refs/tags/"
SETTINGS = "_esker/settings/"
COMMITS = "_esker/commits/"
PACKS = "_esker/packs/"
EXPIRED = "_esker/expired/"
EXPIRED_BEFORE = "_esker/expired.json"
CLOCK = "_esker/clock"
PACKED_HEADS = "_esker/refs/packed_heads.json"
RUNS = "_esker/gc/"
TABLES = "_lakefs/"
DATA = "data/"

LAKEFS_MARKER = "_lakefs/dummy"
"""What a lakeFS server puts into a namespace that it owns."""
LAKEFS_OLD_MARKER = "dummy"
"""The same of old servers."""
LAKEFS_REFS = "_lakefs/refs_manifest.json"
"""The newest dump of a repository's refs."""
LAKEFS_EXPIRED = "_lakefs/esker_expired.json"
"""Ids of commits of dumps that have expired."""

FORMAT_VERSION = 1
DIGITS = 20

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/-]{0,254}")


def check_name(name: str, what: str) -> str:
    """The name of a branch or a tag, checked.

    Raises:
        InvalidArgumentError: It is empty, too long, or holds what ref expressions or stores have a use for.

    Example:
        >>> from esker.repo.refs.layout import check_name
        >>> check_name("feature/x-1", "branch")
        'feature/x-1'
    """
    bad = ("..", "//", ".lock")
    if (
        not isinstance(name, str)
        or not _NAME.fullmatch(name)
        or any(part in name for part in bad)
        or name.endswith("/")
    ):
        raise InvalidArgumentError(
            f"expected the name of a {what}: up to 255 letters of ASCII, digits, '.', '_', '-' and '/', neither '.', "
            f"'-' nor '/' first, no '/' last, without '..', '//' and '.lock', found {name!r}; choose another"
        )
    if re.fullmatch(r"[0-9a-f]{64}", name):
        raise InvalidArgumentError(f"expected the name of a {what}, found {name!r}, which reads as a commit's id")
    return name


def head_folder(branch: str) -> str:
    """The folder of a branch's log.

    Example:
        >>> from esker.repo.refs.layout import head_folder
        >>> head_folder("feature/x")
        '_esker/refs/heads/feature%2Fx/'
    """
    return f"{HEADS}{quote(branch, safe='')}/"


def branch_of(path: str) -> str:
    """The branch that an entry's path belongs to."""
    return unquote(path.removeprefix(HEADS).split("/", 1)[0])


def tag_path(tag: str) -> str:
    """The object of a tag."""
    return TAGS + quote(tag, safe="")


def numbered(folder: str, number: int) -> str:
    """An entry of a log.

    Example:
        >>> from esker.repo.refs.layout import numbered
        >>> numbered("_esker/settings/", 7)
        '_esker/settings/00000000000000000007'
    """
    return f"{folder}{number:0{DIGITS}d}"
