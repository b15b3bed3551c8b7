"""What is at a URI: a Lance table, a Delta table or a repository, recognised by a folder that each kind has.

The check costs requests, so it is made only for the error message, after the expected kind was not found.
"""

from __future__ import annotations

from dataclasses import dataclass

from .._native.store import Store
from ..exceptions import IOFailedError, NotFoundError, UnsupportedError


@dataclass(frozen=True)
class Kind:
    """One kind of thing that can be at a URI.

    Args:
        name: Its name for programs.
        noun: Its name for people, with the article.
        folder: A folder in which things of this kind, and no others, have objects.
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
    """The kind of thing at the root of a store, None if it is none of them. Costs up to one request per kind.

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
    """The error to raise if a kind of thing was not found: one that names what is there instead, else `error`.

    Args:
        error: The error that says that it was not found.
        store: The store, rooted at the URI.
        uri: The URI, for the message.
        expected: The kind that was to be opened.
    """
    try:
        found = kind_at(store)
    except (IOFailedError, UnsupportedError):
        # The check only improves the message: its own failure must not hide the first error.
        return error
    if found is None or found.name == expected.name:
        return error
    message = f"expected {expected.noun} at {uri}, found {found.noun}; open it with {found.opened_by}"
    return NotFoundError(message, uri=uri, expected=expected.name, found=found.name)
