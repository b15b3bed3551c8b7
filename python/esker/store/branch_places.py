"""Where branches of Lance tables belong: `tree/{branch}` in the folder of the table. No other table is made there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress

from ..exceptions import EskerError, NotFoundError
from .kinds import LANCE
from .s3_ddb import S3_AND_DYNAMODB
from .stores import absolute, resolve


def check_no_branch_belongs(uri: str | os.PathLike[str], *, storage_options: Mapping[str, str] | None = None) -> None:
    """Checks that a new table does not take the place of a branch: `tree/{branch}` in the folder of another table.

    Costs a request for each `/tree/` in the path, and mostly none.

    Args:
        uri: Where nothing is yet.
        storage_options: Options of the store.

    Raises:
        NotFoundError: It does: the branch was deleted, or never made.

    Example:
        >>> from esker.store.branch_places import check_no_branch_belongs
        >>> check_no_branch_belongs("memory://doc-places/tree/b")
    """
    # A relative path has the folder of the other table above it.
    text = absolute(uri)
    plain, mark, query = text.partition("?") if text.lower().startswith(S3_AND_DYNAMODB) else (text, "", "")
    parts = plain.rstrip("/").split("/tree/")
    for at in range(1, len(parts)):
        root, branch = "/tree/".join(parts[:at]), "/tree/".join(parts[at:])
        if not root or root.endswith(":/"):
            continue
        is_table = False
        # What is above may be nobody's to read: then no table of ours is there.
        with suppress(EskerError, OSError):
            store = resolve(f"{root}{mark}{query}", storage_options=storage_options)
            is_table = bool(store.list_first(LANCE.folder, 1)[0])
        if is_table:
            raise NotFoundError(
                f"expected the branch {branch} of the table at {root}, found none at {text}: it was deleted, or never "
                "made, and a new table there would be in its way; make it with create_branch, or write to another path",
                uri=text,
            )
