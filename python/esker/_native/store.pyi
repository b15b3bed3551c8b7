"""A flat space of objects under one root: a folder, memory, or a prefix of a bucket."""

from collections.abc import Sequence
from typing import Any, Self, final

from typing_extensions import disjoint_base

from .graveler import Batch

__all__ = [
    "IoStats",
    "ListedObjects",
    "ObjectMeta",
    "ObjectWriter",
    "Session",
    "Store",
    "is_secret_option",
    "path_at_home",
    "total_reads",
]

@final
class ObjectMeta:
    """An object's metadata."""

    @property
    def path(self) -> str:
        """Path relative to the store's root, `/`-separated."""

    @property
    def size(self) -> int:
        """Size in bytes."""

    @property
    def last_modified_us(self) -> int | None:
        """Last change, in microseconds since the Unix epoch."""

@final
class ListedObjects:
    """A listing in batches and in no promised order, which reads ahead in the background."""

    def next_batch(self) -> Batch | None:
        """The next ones, with the columns `path`, `size_bytes` and `modified_us`; None at the end."""

@final
class IoStats:
    """Requests and bytes of one store since the last call."""

    @property
    def read_iops(self) -> int:
        """Read requests that reached the store, after near ranges were joined."""

    @property
    def read_bytes(self) -> int:
        """Bytes that were read."""

    @property
    def write_iops(self) -> int:
        """Write requests: puts, pieces of a file, deletes."""

    @property
    def write_bytes(self) -> int:
        """Bytes that were written."""

@final
class Session:
    """The caches of some stores. Sizes are limits in bytes."""

    def __new__(
        cls, *, metadata_cache_size_bytes: int | None = None, index_cache_size_bytes: int | None = None
    ) -> Self: ...
    @property
    def id(self) -> int:
        """A number that no other session has while this one lives."""

    @property
    def metadata_bytes(self) -> int:
        """Bytes that are kept of the metadata of files and pages."""

    @property
    def index_bytes(self) -> int:
        """Bytes that are kept of indices."""

    @property
    def num_items(self) -> int:
        """How many entries are kept."""

@final
class ObjectWriter:
    """A new object that is written piece by piece. Nothing is visible before `finish`."""

    def write(self, data: bytes) -> None:
        """Appends bytes."""

    def finish(self) -> int:
        """Makes the object visible and returns its size in bytes."""

    def abort(self) -> None:
        """Abandons the object and leaves nothing behind. After `finish` it does nothing."""

@disjoint_base
class Store:
    """The objects under `uri`: a path, `file://`, `memory://NAME` (shared within the process), `s3://`, `gs://`, `az://`.

    A local folder is created by the first write. Pickles: the copy opens the same URI with the same options.

    Args:
        uri: The root.
        storage_options: Options of the store, such as credentials.
        durable: Whether a put returns only when its bytes and its name are on stable storage.
        over: An open store: another handle to it, and nothing is opened; the URI is only what pickles carry.

    Raises:
        InvalidArgumentError: The URI does not parse.
        UnsupportedError: No store answers to the URI's scheme.
    """

    def __new__(
        cls,
        uri: str,
        *,
        storage_options: dict[str, str] | None = None,
        durable: bool = True,
        over: Store | None = None,
    ) -> Self: ...
    @property
    def uri(self) -> str:
        """The root as it was given, without credentials."""

    def join(self, session: Session) -> None:
        """Keeps from now on in a session what is read of files. What was kept is forgotten."""

    @property
    def session(self) -> Session:
        """The session that keeps what is read of files; by default one of its own."""

    def copy(self, path: str, to: Store, target: str) -> int:
        """Copies an object to another store, where it is called `target`; returns its size in bytes."""

    def mount(self, id: int, declared: str, store: Store, holds_data_alone: bool) -> None:
        """Lets paths under `_bases/ID/` lead to another store: that of a table's base path.

        Args:
            id: The base path's number.
            declared: How the table spells its place.
            store: What is there.
            holds_data_alone: Whether data files lie in it directly, rather than in a folder `data/`.

        Raises:
            InvalidArgumentError: The id stands for another place already.
        """

    def mounted(self, id: int) -> tuple[str, bool] | None:
        """`declared` and `holds_data_alone` of what was mounted under that number."""

    def get(self, path: str) -> bytes:
        """A whole object. Raises `NotFoundError`."""

    def get_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """The bytes of several (start, end) ranges of one object, in the order asked for."""

    def head(self, path: str) -> ObjectMeta:
        """Size and time of an object. Raises `NotFoundError`."""

    def put(self, path: str, data: bytes, *, synced: bool = True) -> None:
        """Writes an object, replacing what was there.

        Without `synced`, a power cut may lose it or a part of it, also in a durable store: for what only other writers of
        the moment look at.
        """

    def writer(self, path: str) -> ObjectWriter:
        """Opens a new object for writing piece by piece: in parts, where the store takes them."""

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Writes an object only if none of that name exists; False says that one does, and it is untouched."""

    def list_batches(self, prefix: str = "") -> ListedObjects:
        """The objects of `list` in batches and in no promised order: memory does not grow with their number."""

    def list_paths(self, prefix: str = "") -> list[str]:
        """The paths of `list`, which a file system lists without a `stat` of each file."""

    def list_folders(self, prefix: str = "") -> list[str]:
        """The folders directly below a folder, each with its `/`: one delimited listing. Empty ones may be among them."""

    def list_first(self, prefix: str, count: int) -> tuple[list[str], bool]:
        """The first paths below `prefix` in byte order, `count` of them or more, and whether these are all.

        One request to a store that lists in byte order; others are asked for everything.
        """

    def list_starting(self, prefix: str, start: str) -> list[str]:
        """The paths in the folder `prefix` whose names start with `start`, in byte order; a store that can lists no others."""

    def list_unfinished(self, prefix: str = "") -> list[ObjectMeta]:
        """What dead writers, and writers at work, have below a folder that never got its object's name. Only local
        folders show it."""

    def delete_unfinished(self, path: str) -> None:
        """Removes what `list_unfinished` told of. Raises `InvalidArgumentError` for any other path."""

    def delete_all(self, paths: list[str]) -> None:
        """Removes objects, a thousand with one request where the store takes that. After an error some are gone."""

    def list(self, prefix: str = "") -> list[ObjectMeta]:
        """All objects whose path starts with `prefix` (a folder, ending in `/`), in byte order of their paths.

        A folder that does not exist holds none.
        """

    def delete(self, path: str) -> None:
        """Removes an object. Removing what is not there is not an error."""

    def io_stats(self) -> IoStats:
        """Requests and bytes since the last call, those of scans, takes and writes over this store among them."""

    def io_stats_snapshot(self) -> IoStats:
        """The same without resetting the counts."""

    def __reduce__(self) -> tuple[Any, ...]: ...

def path_at_home(path: str) -> str:
    """A path without its mount `_bases/ID/`: what the mounted store calls it."""

def is_secret_option(key: str, /) -> bool:
    """Whether a storage option of that name holds a secret: a key, a token, a password."""

def total_reads() -> tuple[int, int]:
    """The read requests of all stores of the process since its start, and the bytes that they read."""
