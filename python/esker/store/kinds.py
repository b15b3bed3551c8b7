"""Which kind of thing lies at a place: a Lance table, a Delta table or a repository, by the folder that each one has.

A look costs requests, so nothing looks before it opens: only who has not found what was expected looks what is there.
"""

from __future__ import annotations

from dataclasses import dataclass

from .._native.store import Store
from ..exceptions import IOFailedError, NotFoundError, UnsupportedError


@dataclass(frozen=True)
class Kind:
    """One kind of thing that a place can hold.

    Args:
        name: For programs.
        noun: For people, with its article.
        folder: Where each of its kind has objects, and no other kind has any.
        opened_by: The call that opens it.
    """

    name: str
    noun: str
    folder: str
    opened_by: str


LANCE = Kind("lance", "a Lance table", "_versions/", "esker.dataset")
DELTA = Kind("delta", "a Delta table", "_delta_log/", "esker.delta.DeltaTable")
REPOSITORY = Kind("repository", "a repository", "_esker/", "esker.repo.Repository")
_OF_A_SERVER = Kind(REPOSITORY.name, "a repository of a lakeFS server", "_lakefs/", REPOSITORY.opened_by)

_KINDS = (LANCE, DELTA, REPOSITORY, _OF_A_SERVER)


def kind_at(store: Store) -> Kind | None:
    """What lies at the root of a store, None for nothing known. One request for each kind until one is found.

    Example:
        >>> import esker, pyarrow as pa
        >>> from esker.store.kinds import kind_at
        >>> from esker.store.stores import resolve
        >>> _ = esker.write_dataset(pa.table({"id": [1]}), "memory://doc-kinds")
        >>> kind_at(resolve("memory://doc-kinds")).noun
        'a Lance table'
    """
    return next((kind for kind in _KINDS if store.list_first(kind.folder, 1)[0]), None)


def found_instead(error: NotFoundError, store: Store, uri: str, expected: Kind) -> NotFoundError:
    """What to raise where a kind of thing was not found: an error that names what lies there instead, else `error`.

    Args:
        error: What says that it was not found.
        store: The place, at its root.
        uri: The place, for the message.
        expected: What was to be opened.
    """
    try:
        found = kind_at(store)
    except (IOFailedError, UnsupportedError):
        # That nothing was found is known for sure; this look is a courtesy.
        return error
    if found is None or found.name == expected.name:
        return error
    message = f"expected {expected.noun} at {uri}, found {found.noun}; open it with {found.opened_by}"
    return NotFoundError(message, uri=uri, expected=expected.name, found=found.name)
