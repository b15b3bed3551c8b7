"""What is written about a tag or a branch: JSON as pylance has it. Fields of newer writers stay where they are."""

from __future__ import annotations

import json
import re
import time
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from ...exceptions import CorruptFileError

_MOMENT = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)")


@dataclass(frozen=True)
class RefContents:
    """The fields of a tag or a branch, under the names of the file.

    Args:
        fields: All fields.
    """

    fields: dict[str, Any]

    @classmethod
    def decode(cls, data: bytes, path: str, version_key: str) -> RefContents:
        """The fields in a file.

        Args:
            data: The file's bytes.
            path: Where it lies, for the error message.
            version_key: The field that must hold the number of a version.

        Raises:
            CorruptFileError: The bytes are not such JSON.
        """
        try:
            found: Any = json.loads(data)
            number, metadata = found[version_key], found.get("metadata") or {}
        except (ValueError, KeyError, TypeError, AttributeError):
            number = metadata = None
        is_number = isinstance(number, int) and not isinstance(number, bool) and number >= 0
        if not is_number or not isinstance(metadata, dict):
            raise CorruptFileError(
                f"{path}: expected JSON with a {version_key}, found something else; nothing is cleaned up as long as "
                "it is unknown what it protects, remove it if it is nobody's",
                path=path,
            )
        return cls(found)

    def encode(self) -> bytes:
        """The file's bytes."""
        return json.dumps(self.fields, indent=2, ensure_ascii=False).encode()

    def with_metadata(self, metadata: dict[str, str]) -> RefContents:
        """The same with other metadata."""
        return RefContents({**self.fields, "metadata": dict(metadata)})

    @property
    def metadata(self) -> dict[str, str]:
        """The user's key-values."""
        return dict(self.fields.get("metadata") or {})

    @property
    def manifest_size(self) -> int:
        """The bytes of the manifest that it names, 0 if it does not say."""
        return _count(self.fields.get("manifestSize"))


class TagContents(RefContents):
    """The fields of a tag."""

    @classmethod
    def of(cls, branch: str | None, version: int, manifest_size: int) -> TagContents:
        """The fields of a new tag."""
        now = moment_now()
        return cls(
            {
                "branch": branch,
                "version": version,
                "createdAt": now,
                "updatedAt": now,
                "manifestSize": manifest_size,
                "metadata": {},
            }
        )

    @classmethod
    def read(cls, data: bytes, path: str) -> TagContents:
        """The fields in a tag's file."""
        found = cls(RefContents.decode(data, path, "version").fields)
        _check_branch(found.fields.get("branch"), path)
        return found

    def moved(self, to: TagContents) -> TagContents:
        """This tag at the version of another one, with this one's metadata and time of creation."""
        fields = {**self.fields, **to.fields, "metadata": self.metadata}
        fields.pop("createdAt")
        if "createdAt" in self.fields:
            fields["createdAt"] = self.fields["createdAt"]
        # The order of pylance's fields.
        order = ["branch", "version", "createdAt", "updatedAt", "manifestSize", "metadata"]
        return TagContents({key: fields[key] for key in [*order, *fields] if key in fields})

    @property
    def branch(self) -> str | None:
        """The branch of the version, None for the main line."""
        branch: str | None = self.fields.get("branch")
        return branch

    @property
    def version(self) -> int:
        """The number of the version."""
        return int(self.fields["version"])

    def time(self, name: str) -> datetime | None:
        """When it was made (`createdAt`) or moved (`updatedAt`), None if its writer did not say."""
        return _moment(self.fields.get(name))


class BranchContents(RefContents):
    """The fields of a branch."""

    @classmethod
    def of(cls, parent: BranchContents | None, parent_name: str | None, version: int, size: int) -> BranchContents:
        """The fields of a new branch.

        Args:
            parent: The fields of its parent, None for the main line.
            parent_name: The parent's name.
            version: The version that it starts from.
            size: The bytes of that version's manifest.
        """
        inherited = [list(step) for step in parent.identifier] if parent is not None else []
        return cls(
            {
                "parentBranch": parent_name,
                "identifier": {"version_mapping": [*inherited, [version, uuid.uuid4().hex]]},
                "parentVersion": version,
                "createAt": int(time.time()),
                "manifestSize": size,
                "metadata": {},
            }
        )

    @classmethod
    def read(cls, data: bytes, path: str, name: str) -> BranchContents:
        """The fields in the file of the branch `name`."""
        fields = RefContents.decode(data, path, "parentVersion").fields
        parent = fields.get("parentBranch")
        _check_branch(parent, path)
        # Early writers gave none: pylance makes this one up then, which is always the same.
        made_up = _made_up_identifier(name, parent or "", fields["parentVersion"], _count(fields.get("createAt")))
        fields.setdefault("identifier", {"version_mapping": [[0, made_up]]})
        return cls(fields)

    @property
    def parent_branch(self) -> str | None:
        """The name of the branch that it starts from, None for the main line."""
        branch: str | None = self.fields.get("parentBranch")
        return branch

    @property
    def parent_version(self) -> int:
        """The version that it starts from."""
        return int(self.fields["parentVersion"])

    @property
    def created_s(self) -> int:
        """When it was made, in seconds since the Unix epoch; 0 if its writer did not say."""
        return _count(self.fields.get("createAt"))

    @property
    def identifier(self) -> list[tuple[int, str]]:
        """Where it and its ancestors started: versions, each with a random id."""
        try:
            return [(int(version), str(id_)) for version, id_ in self.fields["identifier"]["version_mapping"]]
        except (KeyError, TypeError, ValueError):
            return []

    def descends_from(self, other: BranchContents) -> bool:
        """Whether it started from `other`, or from a branch that did."""
        ours, theirs = self.identifier, other.identifier
        return bool(theirs) and len(ours) > len(theirs) and ours[: len(theirs)] == theirs


def moment_now() -> str:
    """The current time as tags have it: in UTC, to the nanosecond."""
    seconds, nanos = divmod(time.time_ns(), 10**9)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{nanos:09d}Z"


def _moment(text: object) -> datetime | None:
    match = _MOMENT.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return None
    micros = int((match.group(2) or "0").ljust(9, "0")) // 1000
    zone = match.group(3).replace("Z", "+00:00")
    return (datetime.fromisoformat(match.group(1) + zone) + timedelta(microseconds=micros)).astimezone(UTC)


def _count(found: object) -> int:
    return found if isinstance(found, int) else 0


def _check_branch(branch: object, path: str) -> None:
    if branch is not None and not isinstance(branch, str):
        raise CorruptFileError(f"{path}: expected the name of a branch, found {branch!r}; correct it", path=path)


def _made_up_identifier(name: str, parent: str, version: int, created_s: int) -> str:
    """Two hashes (FNV-1a, of 64 bits) of what is known of the branch."""
    text = f"branch_name={name}\nparent_branch={parent}\nparent_version={version}\ncreate_at={created_s}".encode()
    offset = 0xCBF29CE484222325
    found = b""
    for seed in (offset, offset ^ 0x9E3779B97F4A7C15):
        for byte in text:
            seed = (seed ^ byte) * 0x100000001B3 % 2**64
        found += seed.to_bytes(8, "big")
    return found.hex()
