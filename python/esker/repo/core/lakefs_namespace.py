"""Whether a lakeFS server owns a storage namespace."""

from __future__ import annotations

from ..._native.store import Store
from ...exceptions import NotFoundError
from ..refs.layout import LAKEFS_MARKER, LAKEFS_OLD_MARKER, TABLES


def lakefs_marker(store: Store) -> str | None:
    """What says that a lakeFS server owns a place, None if nothing does. Old servers put it at the root."""
    try:
        store.head(LAKEFS_MARKER)
    except NotFoundError:
        pass
    else:
        return LAKEFS_MARKER
    try:
        store.head(LAKEFS_OLD_MARKER)
    except NotFoundError:
        return None
    # Anybody may call a file so: it is theirs where their tables are.
    return LAKEFS_OLD_MARKER if store.list_first(TABLES, 1)[0] else None
