"""Appends fragments that were staged for a new table to the table that another writer has created meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ..._native import table as native
from ..._native.schema import Field, Schema
from ...commit.protocol import CommitLock
from ...exceptions import NotFoundError, SchemaMismatchError
from ...storage_version import may_stand_together
from ..commit import LanceCommit
from ..log import LanceLog, NamingScheme


def append_to_newcomer(
    log: LanceLog,
    fragments: Sequence[native.Fragment],
    schema: Schema,
    data_storage_version: str,
    *,
    properties: dict[str, str] | None,
    scheme: NamingScheme = "V2",
    lock: CommitLock | None = None,
) -> LanceCommit:
    """The commit that appends fragments which were staged for a new table, to the one that another writer created.

    Args:
        log: The log of the table that another writer created.
        fragments: The staged fragments.
        schema: Their columns, with the field ids assigned for the new table.
        data_storage_version: The version of their files.
        properties: The properties of the transaction.
        scheme: The naming scheme of manifests if the listing has none.
        lock: Held around the commit.

    Raises:
        SchemaMismatchError: The table has other columns, other field ids, or a file version that cannot be mixed with
            ours.
    """
    listing = log.newest()
    try:
        base = log.manifest(1, listing.scheme if listing.versions else scheme)
    except NotFoundError:
        # A clone begins with the version that it was made of, and a cleaned table with a later one.
        base = log.open()[0]
    base.check_readable()
    fits = may_stand_together(base.storage_version_to_write, data_storage_version)
    fits = fits and _ids(base.schema.fields) == _ids(schema.fields)
    # Arrow's types of a blob and of plain bytes are equal; their descriptions, as files hold them, are not.
    fits = fits and pa.schema(base.schema.described()) == pa.schema(schema.described())
    if pa.schema(base.schema) != pa.schema(schema) or not fits:
        raise SchemaMismatchError(
            f"another writer created the table at {log.uri} meanwhile, with other columns or another file version; "
            "nothing of ours is visible, run it again",
            expected=str(pa.schema(base.schema)),
            found=str(pa.schema(schema)),
        )
    transaction = native.Transaction.append(base.version, list(fragments), properties=properties)
    return LanceCommit(log, transaction, lock=lock)


def _ids(fields: list[Field]) -> list[int]:
    return [id_ for field in fields for id_ in (field.id, *_ids(field.children))]
