"""Folders of refs and transactions as stores: readers and writers of tables take their URIs as if they were buckets.

```
esker-tx://<token>/<path>            a transaction, in its own process, until it ends
esker://<repository>@<branch>/<path> a branch: each commit of a table is a commit of the branch
esker://<repository>@<ref>/<path>    any other ref, read only, at the commit that it means when it is opened
```

In a transaction, written bytes lie in the repository at once, and their paths are staged. A table's own commit is
provisional until the transaction commits; one commit of the repository covers many tables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import unquote
from weakref import WeakValueDictionary

from .._native.store import Store
from ..exceptions import InvalidArgumentError, NotFoundError
from ..store import stores
from .core.opening import origin_of
from .core.repository_core import RepositoryCore
from .errors import ExpiredError
from .refs.commits import Commit
from .refs.expired import explained
from .stores import transactions
from .stores.branches import BranchStore
from .stores.ref_folder import RefFolder
from .table_address import SCHEME, TableAddress, address, parse, parsed

OLD_REF = "esker-ref"
"""The scheme that releases before had for refs, which goes on opening."""

_NO_BRANCH = re.compile(r"[~^@$]|^[0-9a-f]{64}$")
"""What a branch's name has not: steps back, and the form of a commit's id."""

_cores: WeakValueDictionary[str, RepositoryCore] = WeakValueDictionary()
"""The repositories whose URIs handles of this process gave out: they are opened with what the handle has."""


def uri_of(core: RepositoryCore, ref: str, path: str) -> str:
    """The URI of a folder of a ref. In this process, this handle of the repository opens it, hooks and all."""
    _cores[core.uri] = core
    return address(core.uri, ref, path)


def _core_of(place: str, options: Mapping[str, str]) -> RepositoryCore:
    known = _cores.get(place)
    if known is not None and (not options or dict(options) == known.options):
        return known
    return origin_of(place, options).open()


def pinned(uri: str, storage_options: Mapping[str, str] | None = None) -> str:
    """The URI that goes on meaning what a URI means now: that of a commit for that of a ref; others as they are.

    Args:
        uri: Any.
        storage_options: Options of the repository's store.

    Example:
        >>> from esker.repo.branch_store import pinned
        >>> pinned("s3://bucket/t")
        's3://bucket/t'
    """
    found = parse(uri)
    if found is None:
        return uri
    commit = _core_of(found.repository, storage_options or {}).resolve(found.ref)
    return address(found.repository, commit.id, found.path)


def expired(uri: str, error: NotFoundError, storage_options: Mapping[str, str] | None = None) -> ExpiredError | None:
    """The error that tells that the commit of a URI has expired, if that is why something was not found there.

    Args:
        uri: Any.
        error: What a read has raised: of a commit that was open before, some is missed late.
        storage_options: Options of the repository's store.

    Example:
        >>> from esker.exceptions import NotFoundError
        >>> from esker.repo.branch_store import expired
        >>> expired("s3://bucket/t", NotFoundError("no object")) is None
        True
    """
    found = parse(uri)
    if isinstance(error, ExpiredError):
        return error
    if found is None:
        return None
    core = _core_of(found.repository, storage_options or {})
    try:
        with explained(core.store, core.resolve(found.ref).id):
            raise error
    except ExpiredError as told:
        return told
    except NotFoundError:
        return None


def is_of_branch(uri: str, storage_options: Mapping[str, str] | None = None) -> bool:
    """Whether a URI is that of a folder of a branch that is there and can be written to.

    Args:
        uri: Any.
        storage_options: Options of the repository's store.

    Example:
        >>> from esker.repo.branch_store import is_of_branch
        >>> is_of_branch("s3://bucket/t")
        False
    """
    found = parse(uri)
    return found is not None and _branch_of(_core_of(found.repository, storage_options or {}), found.ref) is not None


def check_unprotected(uri: str, storage_options: Mapping[str, str] | None = None) -> None:
    """Refuses to write to a branch that the settings of its repository protect.

    Args:
        uri: Any.
        storage_options: Options of the repository's store.

    Raises:
        ProtectedBranchError: They do.

    Example:
        >>> from esker.repo.branch_store import check_unprotected
        >>> check_unprotected("s3://bucket/t")
    """
    found = parse(uri)
    if found is not None:
        _core_of(found.repository, storage_options or {}).check_unprotected(found.ref)


def _branch_of(core: RepositoryCore, ref: str) -> Commit | None:
    """The last commit of the branch that a ref names, if it names one and the repository can be written to."""
    if core.is_read_only or _NO_BRANCH.search(ref):
        return None
    entry = core.log(ref).head()
    return None if entry is None or entry.kind == "delete" else core.commit_of(entry, ref)


def _folder(path: str) -> str:
    return path.strip("/") + "/" if path.strip("/") else ""


def _open_address(uri: str, options: Mapping[str, str], durable: bool) -> Store:
    return _open(parsed(uri), uri, options)


def _open(found: TableAddress, uri: str, options: Mapping[str, str]) -> Store:
    core = _core_of(found.repository, options)
    commit = _branch_of(core, found.ref)
    if commit is not None:
        return BranchStore(core, found.ref, commit, _folder(found.path), uri)
    return _folder_of(core, found.ref, found.path, uri)


def _folder_of(core: RepositoryCore, ref: str, path: str, uri: str) -> RefFolder:
    commit = core.resolve(ref)
    with explained(core.store, commit.id):
        return RefFolder.of(core, commit.meta_range_id, path, uri)


def _open_old_ref(uri: str, options: Mapping[str, str], durable: bool) -> Store:
    place, _, rest = uri.removeprefix(f"{OLD_REF}://").partition("/")
    ref, _, path = rest.partition("/")
    if not ref:
        raise InvalidArgumentError(f"expected {OLD_REF}://<repository>/<ref>/<path>, found {uri}")
    return _folder_of(_core_of(unquote(place), options), unquote(ref), path, uri)


stores.register(transactions.SCHEME, transactions.open_store, is_behind_network=transactions.is_behind_network)
stores.register(SCHEME, _open_address)
stores.register(OLD_REF, _open_old_ref)
