"""The upload of a new object's bytes. They are an orphan until a commit refers to them."""

from __future__ import annotations

import hashlib
import time
import uuid
from datetime import UTC, datetime

from ..._native.store import ObjectWriter, Store
from ...exceptions import IOFailedError
from ..refs.layout import DATA
from .object_info import ObjectInfo

SHORT_BYTES = 8 << 20
"""What is not longer is put at once."""


class Upload:
    """One object's bytes: written in any pieces, put whole where they are few, else in parts as they come.

    Args:
        store: The repository's root.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        # Later hours come first, so that a cleaner that lists sees what is young at the start.
        self._address = f"{DATA}{int(10**7 - time.time() // 3600):08d}/{uuid.uuid4().hex}"
        self._hash = hashlib.md5(usedforsecurity=False)
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._writer: ObjectWriter | None = None
        self._failure: BaseException | None = None
        self.size = 0

    def write(self, data: bytes | memoryview) -> None:
        """Appends bytes."""
        self._check_whole()
        raw = bytes(data)
        self._hash.update(raw)
        self.size += len(raw)
        self._held.append(raw)
        self._held_bytes += len(raw)
        if self._held_bytes > SHORT_BYTES:
            self._send()

    def _send(self) -> None:
        if self._writer is None:
            self._writer = self._store.writer(self._address)
        try:
            self._writer.write(b"".join(self._held))
        except BaseException as error:
            self._failure = error
            raise
        self._held, self._held_bytes = [], 0

    def _check_whole(self) -> None:
        # Of a part whose reply was lost, the bytes may be there: sent once more, they would be there twice.
        if self._failure is not None:
            raise IOFailedError(
                f"a part of the object was not written, so that it cannot go on: {self._failure}; write it anew",
                path=self._address,
            ) from self._failure

    def finish(self, path: str, content_type: str, metadata: dict[str, str]) -> ObjectInfo:
        """Makes the object visible, and tells what to stage for it at a path."""
        self._check_whole()
        if self._writer is None:
            self._store.put(self._address, b"".join(self._held))
        else:
            if self._held:
                self._send()
            self._writer.finish()
        return ObjectInfo(
            path=path,
            physical_address=self._address,
            size_bytes=self.size,
            checksum=self._hash.hexdigest(),
            mtime=datetime.now(UTC),
            content_type=content_type,
            metadata=metadata,
        )

    def abort(self) -> None:
        """Gives up what was written."""
        self._held = []
        if self._writer is not None:
            self._writer.abort()
