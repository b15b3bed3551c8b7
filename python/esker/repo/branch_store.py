"""A folder of a branch as a store: readers and writers of tables take its URI as if it were a bucket.

```
esker-tx://<token>/<path>                               a transaction, in its own process, until it ends
esker://<repository's URI, %-encoded>@<ref>/<path>      a ref, see `table_address`
esker-ref://<repository's URI, %-encoded>/<ref>/<path>  the same as releases before wrote it
```

In a transaction, written bytes lie in the repository at once, and their paths are staged. A table's own commit is
provisional until the transaction commits; one commit of the repository covers many tables.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from urllib.parse import unquote

from .._native.graveler import BranchStaging, StagedPaths
from .._native.store import Store
from ..exceptions import InvalidArgumentError, NotFoundError
from ..store import stores
from .core.repository_core import RepositoryCore
from .ref_folder import open_address, open_ref
from .table_address import SCHEME

TRANSACTION = "esker-tx"
REF = "esker-ref"

_open: dict[str, BranchStaging] = {}


def begin(core: RepositoryCore, metarange: str, staged: StagedPaths) -> str:
    """Opens what is staged over a content to stores; the token by which `esker-tx://` finds it until it is ended."""
    token = uuid.uuid4().hex
    _open[token] = BranchStaging(core.storage, metarange, token, staged, storage_options=core.options)
    return token


def end(token: str) -> None:
    """Ends a staging: what is still open on it refuses to write."""
    staging = _open.pop(token, None)
    if staging is not None:
        staging.end()


def transaction_uri(token: str, path: str) -> str:
    """The URI of a folder of a transaction."""
    return f"{TRANSACTION}://{token}/{path.strip('/')}".rstrip("/")


def _folder(path: str) -> str:
    return path.strip("/") + "/" if path.strip("/") else ""


def _open_transaction(uri: str, options: Mapping[str, str], durable: bool) -> Store:
    token, _, path = uri.removeprefix(f"{TRANSACTION}://").partition("/")
    staging = _open.get(token)
    if staging is None:
        raise NotFoundError(f"{uri}: expected a transaction of this process, found none; it may have ended", uri=uri)
    return staging.store(uri, _folder(path))


def _open_ref(uri: str, options: Mapping[str, str], durable: bool) -> Store:
    place, _, rest = uri.removeprefix(f"{REF}://").partition("/")
    ref, _, path = rest.partition("/")
    if not ref:
        raise InvalidArgumentError(f"expected {REF}://<repository>/<ref>/<path>, found {uri}")
    return open_ref(unquote(place), unquote(ref), path, uri, options)


stores.register(TRANSACTION, _open_transaction)
stores.register(REF, _open_ref)
stores.register(SCHEME, open_address)
