"""Committed storage of repositories: SSTables, ranges and metaranges, their changes, differences and merges.

Everything here is immutable and named by the hash of its content, so nothing needs a lock and all of it may be kept. A
metarange's id stands for a content; `None` and `""` are the empty content that a repository starts with. Which commit a
branch points at is decided in `esker.repo`.

An entry has eight columns: `physical_address` (string), `address_type` (`relative` to the repository's root, `full`,
or `by_prefix` in old ones), `size_bytes` (int64), `checksum` (string), `mtime` (timestamp[us, UTC]), `content_type` (string),
`metadata` (map of strings), `identity` (32 bytes).
"""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Literal, final

from .store import ListedObjects, Store
from .write import ArrowStreamExportable

__all__ = [
    "Applied",
    "Batch",
    "BranchStaging",
    "ChangeStream",
    "Changes",
    "Commit",
    "Differences",
    "ImportedObjects",
    "Listing",
    "Merged",
    "MissingNames",
    "Records",
    "SortedNames",
    "SplitRule",
    "StagedPaths",
    "Storage",
    "decode_entry",
    "decode_range",
    "decode_ref",
    "encode_ref",
    "entry_identity",
]

@final
class SplitRule:
    """Where one range ends and the next begins.

    Args:
        min_size: Bytes before which no range is ended.
        max_size: Bytes at which each is ended; it passes them by one entry at most.
        raggedness: In between, one key in so many ends a range: the same keys on all branches.
    """

    def __new__(cls, *, min_size: int = 0, max_size: int = 20971520, raggedness: int = 50_000) -> SplitRule: ...
    @property
    def min_size(self) -> int:
        """In bytes."""

    @property
    def max_size(self) -> int:
        """In bytes."""

    @property
    def raggedness(self) -> int:
        """In entries."""

@final
class Batch:
    """A record batch for Arrow: `pyarrow.record_batch(batch)`."""

    @property
    def num_rows(self) -> int:
        """How many."""

    def __arrow_c_schema__(self) -> object:
        """Arrow's PyCapsule interface."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """Arrow's PyCapsule interface."""

@final
class BranchStaging:
    """The staging of a branch: uncommitted changes over a content, written through stores. Its holder may commit them.

    Args:
        storage: The repository's tables; the objects are in the same store.
        metarange: The content.
        token: Random; makes addresses that no other writer uses.
        staged: The staged changes, which may be shared.
        storage_options: Options of the stores that hold imported objects.
    """

    def __new__(
        cls,
        storage: Storage,
        metarange: str | None,
        token: str,
        staged: StagedPaths,
        *,
        storage_options: Mapping[str, str] | None = None,
    ) -> BranchStaging: ...
    def rebase(self, storage: Storage, metarange: str | None) -> None:
        """Puts another content below what is staged."""

    @property
    def age_s(self) -> float:
        """Seconds since the first object was written, from the last `reset_age` on; 0 if none was."""

    def reset_age(self) -> None:
        """Forgets when the first object was written: what was staged is committed."""

    def store(self, uri: str, prefix: str = "", *, read_only: bool = False) -> Store:
        """The objects whose paths start with `prefix` (ending in `/`, or empty), as a store. Writes to it are staged."""

    def end(self) -> None:
        """Ends the staging: later writes through stores are errors."""

@final
class StagedPaths:
    """Staged changes (new objects and deletions), sorted by path. A handle and a `BranchStaging` may share one."""

    def __new__(cls) -> StagedPaths: ...
    def stage(
        self,
        path: str,
        address: str,
        size_bytes: int,
        checksum: str,
        modified_us: int | None,
        content_type: str,
        metadata: Mapping[str, str],
        address_type: str,
    ) -> None:
        """Stages an object at a path.

        Raises:
            InvalidArgumentError: The address type is not `relative`, `full` or `by_prefix`.
        """

    def stage_removal(self, path: str) -> None:
        """Stages the deletion of a path."""

    def get(
        self, path: str
    ) -> tuple[str, int, str, int | None, str, dict[str, str], Literal["relative", "full", "by_prefix"]] | None:
        """The object staged at a path; None if its deletion, or nothing, is staged.

        Returns:
            Address, size in bytes, checksum, time in microseconds since the Unix epoch, media type, metadata and the
            address's type.
        """

    def within(self, prefix: str, from_path: str, count: int) -> Batch | None:
        """The first `count` paths that start with a prefix and are not before `from_path`; None if there are none.

        It has the columns `path` and `entry`, which is null for a deletion.
        """

    def forget(self, path: str) -> None:
        """Removes the staged change of a path."""

    def copy(self) -> StagedPaths:
        """A copy-on-write copy."""

    def changes(self) -> ChangeStream:
        """All staged changes, for a commit. The identities are computed."""

    def __len__(self) -> int: ...
    def __contains__(self, path: str, /) -> bool: ...

@final
class ImportedObjects:
    """Imported objects (references to objects elsewhere, or to the repository's own), sorted by path. Of equal paths, the
    last one wins.

    Args:
        folder: Of this machine and there: what is more than memory should hold is written there.
        own_roots: How addresses begin that lie in the repository, without `local://`.
        own_below: How they go on where folders of its own objects are: of these the address is relative to the root.
        memory_bytes: About how much is held.
    """

    def __new__(
        cls, folder: str, *, own_roots: list[str], own_below: str, memory_bytes: int = 33_554_432
    ) -> ImportedObjects: ...
    def add_batch(self, listed: ListedObjects, root: str, below: str) -> bool:
        """Adds a batch of a listing; False at its end.

        Args:
            listed: The listing.
            root: What their paths become addresses with, in front of them.
            below: The same for their paths in the repository.
        """

    def add(self, path: str, address: str, size_bytes: int, modified_us: int | None) -> None:
        """Adds one. Its checksum is of size, time and address."""

    def __len__(self) -> int:
        """How many were added, equal paths included."""

    def changes(self) -> ChangeStream:
        """What was added so far."""

@final
class ChangeStream:
    """A stream of sorted changes, which `Storage.apply` reads once, in batches."""

    @property
    def count(self) -> int:
        """How many were read."""

@final
class SortedNames:
    """Sorts names with a size and a note each, in bounded memory.

    Args:
        folder: Of this machine and there: what is more than memory should hold is written there.
        name: What files are called there.
        memory_bytes: About how much is held.
    """

    def __new__(cls, folder: str, name: str, *, memory_bytes: int = 33_554_432) -> SortedNames: ...
    def add(self, name: str, size_bytes: int = 0, note: str = "") -> None:
        """Adds a name. A name that is added twice is returned twice."""

    def add_batch(self, listed: ListedObjects, *, before_us: float | None = None, but: Sequence[str] = ...) -> bool:
        """Adds the paths of a batch of a listing; False at its end.

        Args:
            listed: The listing.
            before_us: Only what was put before this, in microseconds since the Unix epoch.
            but: Paths that are left out.
        """

    def add_addresses(self, listing: Listing, count: int, root: str, below: str) -> None:
        """Adds the addresses of the next entries of a content.

        Args:
            listing: The content.
            count: How many entries to read.
            root: What is taken away where an address starts with it.
            below: What addresses start with, after that; others are left out.
        """

    def add_objects(self, listing: Listing, count: int, note: str, imports: bool) -> list[tuple[str, str, int]]:
        r"""Adds the addresses below the repository's root of the next entries, noting `<path>\0<note>`.

        Returns:
            Path, address and size of those that are elsewhere, if `imports` asks for them.
        """

    def without(self, others: SortedNames, *, or_size: bool = False) -> MissingNames:
        """Names that the others lack, or with `or_size` have with another size."""

    def __len__(self) -> int:
        """How many were added."""

@final
class MissingNames:
    """The names that others lack, sorted."""

    def next_rows(self, count: int) -> list[tuple[str, int, str, int | None]]:
        """Name, size, note, and size among the others, of the next ones; an empty list at the end."""

@final
class Changes:
    """Changes of paths, sorted by path, each path once."""

    @staticmethod
    def of_entries(stream: ArrowStreamExportable) -> Changes:
        """Of a stream with the columns `path` and, where they are there, `deleted` (bool) and those of an entry.

        What is null or missing is empty, zero, not deleted, `relative`. The identity is computed.
        """

    @staticmethod
    def of_records(stream: ArrowStreamExportable) -> Changes:
        """Of a stream with the binary columns `key`, `identity` (null: the key goes) and `data`, taken as they are."""

    def __len__(self) -> int: ...

@final
class Applied:
    """A written content, with the counts of changes and ranges."""

    @property
    def metarange_id(self) -> str | None:
        """Its id; None if nothing changed, and nothing was written."""

    @property
    def added(self) -> int:
        """New paths."""

    @property
    def removed(self) -> int:
        """Removed paths."""

    @property
    def changed(self) -> int:
        """Paths whose identity changed."""

    @property
    def ranges_written(self) -> int:
        """Ranges that were encoded; the metarange is not counted."""

    @property
    def ranges_reused(self) -> int:
        """Ranges that were taken over by reference."""

    @property
    def bytes_written(self) -> int:
        """Of ranges and metarange."""

@final
class Merged:
    """The result of a merge."""

    @property
    def merged(self) -> bool:
        """Whether there is a result: False where there were conflicts and no strategy, and in a dry run that would write."""

    @property
    def metarange_id(self) -> str | None:
        """The merged content."""

    @property
    def conflict_count(self) -> int:
        """Conflicts: paths that both sides changed differently, including those that the strategy resolved."""

    def conflicts(self) -> Batch:
        """The first of them: `path`, and the structs `base`, `source`, `dest`, null where the path is not there."""

    @property
    def ranges_written(self) -> int:
        """Ranges that were encoded."""

    @property
    def ranges_reused(self) -> int:
        """Ranges that were taken over by reference."""

    @property
    def bytes_written(self) -> int:
        """Of ranges and metarange."""

@final
class Differences:
    """Paths in which two contents differ, in their order."""

    def next_batch(self, count: int) -> Batch | None:
        """The next, at most `count`: `path`, `type` (added, removed, changed), and the structs `left` and `right`."""

@final
class Listing:
    """Paths of a content, in their order."""

    def next_batch(self, count: int) -> Batch | None:
        """The next, at most `count`: `path`, `type` (object, common_prefix), and the struct `entry`, null for a prefix."""

@final
class Records:
    """The records of one table as they are stored."""

    @property
    def properties(self) -> dict[str, bytes]:
        """The table's properties."""

    @property
    def file_size(self) -> int:
        """In bytes."""

    def next_batch(self, count: int) -> Batch | None:
        """The next, at most `count`: `key`, `identity` and `data`, all binary."""

@final
class Commit:
    """A commit's record. Its id is the hash of all but version and generation."""

    def __new__(
        cls,
        *,
        committer: str,
        message: str,
        metarange_id: str,
        creation_date: int,
        metadata: Mapping[str, str],
        parents: Sequence[str],
        generation: int,
        version: int = 1,
    ) -> Commit: ...
    @staticmethod
    def decode(data: bytes) -> Commit:
        """Decodes the message in a dump of refs; its id must match its content."""

    def encode(self) -> bytes:
        """The commit's message in a dump of refs."""

    @property
    def id(self) -> str:
        """64 hex digits."""

    @property
    def committer(self) -> str:
        """Who committed."""

    @property
    def message(self) -> str:
        """The commit message."""

    @property
    def metarange_id(self) -> str:
        """The id of the content's metarange; empty for a repository's first commit."""

    @property
    def creation_date(self) -> int:
        """The time of the commit, in seconds since the Unix epoch."""

    @property
    def metadata(self) -> dict[str, str]:
        """The user's own keys and values."""

    @property
    def parents(self) -> list[str]:
        """The parents' ids; the first of a merge is the destination's commit."""

    @property
    def generation(self) -> int:
        """1 without parents, else one more than the highest of theirs."""

    @property
    def version(self) -> int:
        """The version of the parents' order, currently 1."""

@final
class Storage:
    """The ranges and metaranges of one repository.

    Args:
        store: The repository's root.
        prefix: Where they are in it.
        cache_bytes: What is kept in memory of what was read and written.
        cache_dir: A folder of this machine for whole tables; several processes may share it.
        cache_dir_bytes: What is kept there.
    """

    def __new__(
        cls,
        store: Store,
        *,
        prefix: str = "_lakefs/",
        cache_bytes: int = 268435456,
        cache_dir: str | PathLike[str] | None = None,
        cache_dir_bytes: int = 1073741824,
    ) -> Storage: ...
    def apply(
        self,
        base: str | None,
        changes: Changes | ChangeStream | ArrowStreamExportable,
        *,
        rule: SplitRule,
        allow_empty: bool = False,
    ) -> Applied:
        """Applies changes to a content. Ranges that they do not touch are reused by reference.

        A stream has the columns that `Changes.of_entries` takes. Its batches are encoded as they come, while those before
        are written, so that no more than a few of them are in memory at once.
        """

    def write(self, changes: Changes, *, rule: SplitRule, properties: Mapping[str, str] = ...) -> Applied:
        """Writes a content of its own, whose tables say `properties` of themselves: how refs are dumped."""

    def merge(
        self,
        base: str | None,
        source: str | None,
        dest: str | None,
        *,
        rule: SplitRule,
        strategy: str = "none",
        dry_run: bool = False,
        max_conflicts: int = 1000,
    ) -> Merged:
        """Merges `source` into `dest`. The strategy is `none`, `dest-wins` or `source-wins`."""

    def diff(self, left: str | None, right: str | None, *, prefix: str = "") -> Differences:
        """The paths in which two contents differ. Ranges that both have are not opened."""

    def touched(
        self, contents: Sequence[tuple[str, str]], *, paths: Sequence[str] = ..., prefixes: Sequence[str] = ...
    ) -> list[bool]:
        """For each pair of contents, whether they differ at one of these paths, or at one that starts so.

        Ranges that both have are not opened, and none where the metaranges tell; the pairs are compared side by side.
        """

    def diff_summary(self, left: str | None, right: str | None) -> Applied:
        """How many paths were added, removed and changed from left to right. Nothing is written."""

    def list(self, metarange: str | None, *, prefix: str = "", from_path: str = "", delimiter: str = "") -> Listing:
        """The paths that start with `prefix`, from `from_path` on; those that go on after a delimiter as one prefix."""

    def get(self, metarange: str | None, paths: Sequence[str]) -> Batch:
        """The entries at these paths, in the form of a listing; paths that are not there are left out.

        A path costs at most three reads of the metarange and three of one range, and 128 KiB of each.
        """

    def ranges(self, metarange: str | None) -> Batch:
        """The ranges of a content: `id`, `min_key`, `max_key`, `estimated_size` (bytes), `count` (entries)."""

    def records(self, table: str) -> Records:
        """The records of a range or metarange as they are stored."""

    def records_of_file(self, name: str) -> Records:
        """The same of a file of any name below the prefix."""

    def repack(self, metarange: str, *, rule: SplitRule) -> Applied:
        """Repacks: joins adjacent small ranges. The content stays the same; no id means that there was nothing to join."""

    def verify(self, table: str) -> Batch:
        """Reads a whole table and recomputes its id; returns its record for a metarange, in the form of `ranges`."""

def decode_entry(data: bytes) -> Batch:
    """One row with the columns of an entry, out of a record's data."""

def decode_range(data: bytes) -> tuple[bytes, bytes, int, int]:
    """First key, last key, estimated size and count, out of a record's data."""

def entry_identity(
    *, size_bytes: int, checksum: str, metadata: Mapping[str, str] = ..., content_type: str = ""
) -> bytes:
    """The identity of an entry, by which objects are compared: 32 bytes."""

def encode_ref(id: str, commit_id: str) -> bytes:
    """The message of a branch or a tag in a dump of refs."""

def decode_ref(data: bytes) -> tuple[str, str]:
    """Decodes such a message to its name and commit."""
