"""The store that log entries are put to: its own put-if-absent decides, unless the user asks for an external store.

Other writers of Delta tables do not ask an external manifest store, and those that commit through DynamoDB (Spark's
`S3DynamoDBLogStore`, old releases of deltalake) do not see a conditional put: with either, commits would be lost.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from ..._native.store import Store
from ...exceptions import UnsupportedError
from ...store.secrets import MANIFEST_STORE
from ...store.stores import resolve
from .external import ONLY_ESKER

_LOCKING = ("aws_s3_locking_provider", "delta_dynamo_table_name")


def resolve_for_writing(uri: str, storage_options: Mapping[str, str] | None, *, durable: bool = True) -> Store:
    """The store of a table that is written to. With `durable`, a put returns when its bytes are on stable storage.

    Raises:
        UnsupportedError: An external manifest store, or commits through DynamoDB, are asked for.

    Example:
        >>> from esker.delta.log.store import resolve_for_writing
        >>> resolve_for_writing("memory://log-store", None).uri
        'memory://log-store'
    """
    options = {key.lower(): value for key, value in (storage_options or {}).items()}
    only_esker = options.get(ONLY_ESKER, "").lower() == "true"
    if uri.lower().startswith("s3+ddb://") or (MANIFEST_STORE in options and not only_esker):
        raise UnsupportedError(
            "a Delta table is not written through an external manifest store: its other writers do not ask it, and "
            "commits would be lost; leave it out, the store's conditional put is enough, or give manifest_store and "
            f'say that only esker writes to the table: storage option {ONLY_ESKER}="true"',
            uri=uri,
        )
    if uri.lower().startswith(("s3://", "s3a://")):
        named = {key.lower(): value for key, value in os.environ.items() if key.lower() in _LOCKING} | options
        if named.get(_LOCKING[0], "").lower() == "dynamodb" or _LOCKING[1] in named:
            raise UnsupportedError(
                "commits through DynamoDB (AWS_S3_LOCKING_PROVIDER, DELTA_DYNAMO_TABLE_NAME) are not written by this "
                "release: writers that use it and those that use conditional puts would lose each other's commits; "
                "take it from all writers of the table, or write with Spark",
                uri=uri,
            )
    return resolve(uri, storage_options=dict(storage_options or {}), durable=durable)
