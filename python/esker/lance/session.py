"""`Session`: what several datasets keep in memory, within limits, and what they cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl
from weakref import WeakValueDictionary

from .._native.store import Session as NativeSession
from .._native.store import Store
from ..exceptions import InvalidArgumentError
from ..missing import refuse_options
from .io_stats import IOMeter, IOStats
from .scan.options import integer


class Session:
    """The caches that datasets share which are opened with it, and one account of their requests.

    Every dataset has a session; without `session=` one of its own. Datasets of one session at the same URI, opened with
    the same options, share what was read of their files; those on branches of a repository share the limits alone.

    Args:
        index_cache_size_bytes: The most bytes that are kept of indices, 1 GiB by default.
        metadata_cache_size_bytes: The most bytes that are kept of the metadata of files and pages, of small pages, zone
            maps and deletion files, 256 MiB by default. 0 keeps nothing: each read then fetches them anew.
        index_cache_backend: In place of `index_cache_size_bytes`: "moka://?capacity=BYTES", or a dict of "kind" and
            "options"; a limit by another name.
        metadata_cache_backend: Likewise.
        store_registry: Refused unless None.

    Raises:
        InvalidArgumentError: A size is negative, or a backend is unknown or given beside a size.
        UnsupportedError: A store registry.

    Example:
        >>> import esker, pyarrow as pa
        >>> _ = esker.write_dataset(pa.table({"id": [1, 2]}), "memory://doc-session")
        >>> session = esker.Session(metadata_cache_size_bytes=64 << 20)
        >>> _ = esker.dataset("memory://doc-session", session=session).to_table()
        >>> 0 < session.size_bytes() <= 64 << 20, session.io_stats().read_bytes > 0
        (True, True)
    """

    def __init__(
        self,
        index_cache_size_bytes: int | None = None,
        metadata_cache_size_bytes: int | None = None,
        index_cache_backend: str | dict[str, Any] | None = None,
        metadata_cache_backend: str | dict[str, Any] | None = None,
        store_registry: Any = None,
    ) -> None:
        refuse_options(store_registry=store_registry)
        self._bind(
            NativeSession(
                index_cache_size_bytes=_limit("index_cache", index_cache_size_bytes, index_cache_backend),
                metadata_cache_size_bytes=_limit("metadata_cache", metadata_cache_size_bytes, metadata_cache_backend),
            )
        )

    def _bind(self, native: NativeSession) -> None:
        self._native = native
        self._meter = IOMeter()
        _LIVE[native.id] = self

    @classmethod
    def _of(cls, store: Store) -> Session:
        """The session of a store."""
        native = store.session
        found = _LIVE.get(native.id)
        if found is None:
            found = cls.__new__(cls)
            found._bind(native)
        found._meter.watch(store)
        return found

    def size_bytes(self) -> int:
        """The bytes that are kept in memory: of metadata and of indices."""
        return self._native.metadata_bytes + self._native.index_bytes

    def index_cache_size_bytes(self) -> int:
        """The bytes that are kept of indices."""
        return self._native.index_bytes

    def approx_num_items(self) -> int:
        """How many things are kept: open files, pages, zone maps, deletion files."""
        return self._native.num_items

    def is_same_as(self, other: Session) -> bool:
        """Whether both share their caches."""
        return self._native.id == other._native.id

    def io_stats(self) -> IOStats:
        """Requests and bytes of all its datasets since the last call."""
        return self._meter.take()

    def io_stats_snapshot(self) -> IOStats:
        """The same, without starting anew."""
        return self._meter.snapshot()

    def _watch(self, store: Store) -> None:
        """Lets a store keep here what it reads, and counts its requests, those so far included."""
        store.join(self._native)
        self._meter.watch(store)

    def __repr__(self) -> str:
        index, metadata = self._native.index_bytes, self._native.metadata_bytes
        return f"Session(index_cache_size_bytes={index}, metadata_cache_size_bytes={metadata})"

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("cannot pickle a Session, whose caches are this process's: a copy of a dataset has its own")


_LIVE: WeakValueDictionary[int, Session] = WeakValueDictionary()
"""Sessions by the number of their core, so that a dataset hands out the one that counts its requests."""


def session_for(
    given: Session | None, index_cache_size_bytes: int | None, metadata_cache_size_bytes: int | None
) -> Session | None:
    """The session that a dataset is opened with: the one that was given, or one of the given sizes; None for defaults.

    Example:
        >>> from esker.lance.session import session_for
        >>> session_for(None, None, None), session_for(None, None, 5)
        (None, Session(index_cache_size_bytes=0, metadata_cache_size_bytes=0))
    """
    if given is not None or (index_cache_size_bytes is None and metadata_cache_size_bytes is None):
        return given
    return Session(index_cache_size_bytes, metadata_cache_size_bytes)


def _limit(cache: str, size: int | None, backend: str | dict[str, Any] | None) -> int | None:
    """The limit that a size or a backend means, in bytes."""
    if backend is None:
        return None if size is None else integer(f"{cache}_size_bytes", size, least=0)
    if size is not None:
        raise InvalidArgumentError(
            f"{cache}_size_bytes and {cache}_backend are mutually exclusive; set one or the other"
        )
    where = f"{cache}_backend"
    kind, options = _parsed(where, backend)
    if kind.lower() != "moka":
        raise InvalidArgumentError(f'{where}: unknown cache backend kind: "{kind}", expected "moka"')
    for name in options:
        if name != "capacity":
            raise InvalidArgumentError(f'{where}: unknown option "{name}", expected "capacity"')
    if "capacity" not in options:
        raise InvalidArgumentError(f"{where}: capacity is required; use moka://?capacity=<bytes>")
    text = options["capacity"]
    if not text:
        raise InvalidArgumentError(f"{where}: capacity must not be empty; use moka://?capacity=<bytes>")
    if not (text.isascii() and text.isdigit()):
        raise InvalidArgumentError(f'{where}: cannot parse capacity "{text}": expected a number of bytes')
    return integer(where, int(text), least=0)


def _parsed(where: str, backend: str | dict[str, Any]) -> tuple[str, Mapping[str, str]]:
    if isinstance(backend, str):
        kind, colon, rest = backend.partition(":")
        if not colon:
            raise InvalidArgumentError(
                f"{where}: cache backend uri \"{backend}\" is missing ':', use moka://?capacity=<bytes>"
            )
        path, _, query = rest.removeprefix("//").partition("?")
        options = dict(parse_qsl(query, keep_blank_values=True))
        return kind, {"path": path, **options} if path else options
    if not isinstance(backend, dict):
        raise InvalidArgumentError(
            f"{where}: expected str (URI) or dict with 'kind'/'options' keys, got {type(backend).__name__}"
        )
    for key in backend:
        if key not in ("kind", "options"):
            raise InvalidArgumentError(f"{where}: unknown dict key \"{key}\"; expected 'kind' or 'options'")
    if "kind" not in backend:
        raise InvalidArgumentError(f"{where}: dict must contain a 'kind' key, found none")
    kind, options = backend["kind"], backend.get("options") or {}
    if not isinstance(kind, str):
        raise InvalidArgumentError(f"{where}: 'kind' must be a string, found {type(kind).__name__}")
    if not isinstance(options, dict) or not all(isinstance(value, str) for value in options.values()):
        raise InvalidArgumentError(f"{where}: 'options' values must be strings, found others")
    return kind, options
