"""Marks what begins a branch: the name of the branch, in the manifest and in the transaction.

The core writes both without it, since it knows only the main line. Here the one field is set in the encoded message;
all other bytes stay as they are. (Manifest: field 20. Transaction: field 5 of the Clone, which is field 113.)
"""

from __future__ import annotations

from collections.abc import Iterator

from ..._native.table import Manifest, Operation, Transaction

_BRANCH = 20
_CLONE = 113
_BRANCH_NAME = 5
_BYTES = 2
"""The wire type of texts and messages: a length, and so many bytes."""
_FOOTER = 16


def with_branch(manifest: Manifest, branch: str | None) -> Manifest:
    """The manifest as a version of a branch; None: of the main line.

    Args:
        manifest: A manifest that this library has made.
        branch: The branch.
    """
    data = manifest.encode()
    # At the end: the place of the message, the version of this layout, and the word LANC.
    start = int.from_bytes(data[-_FOOTER:][:8], "little")
    size = int.from_bytes(data[start : start + 4], "little")
    message = _with_field(data[start + 4 : start + 4 + size], _BRANCH, branch)
    rest = data[start + 4 + size :]
    return Manifest.decode(data[:start] + len(message).to_bytes(4, "little") + message + rest, "the branch's manifest")


def clone_transaction(source: str | None, version: int, path: str, branch: str | None) -> Transaction:
    """The transaction of a shallow clone.

    Args:
        source: The branch of the version that is cloned, None for the main line.
        version: Its number.
        path: The URI of that branch.
        branch: The branch that the clone begins, None for a table of its own.
    """
    operation = Operation.clone_of(is_shallow=True, ref_name=source, ref_version=version, ref_path=path)
    transaction = Transaction(version, operation)
    if branch is None:
        return transaction
    message = bytearray()
    for number, field, payload in _fields(transaction.encode()):
        message += field if number != _CLONE else _field(_CLONE, _with_field(payload, _BRANCH_NAME, branch))
    return Transaction.decode(bytes(message))


def _with_field(message: bytes, number: int, text: str | None) -> bytes:
    """A message with a field of text, which it has once then, or not at all."""
    kept = b"".join(field for found, field, _ in _fields(message) if found != number)
    return kept if text is None else kept + _field(number, text.encode())


def _field(number: int, payload: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(payload)) + payload


def _fields(message: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Each field of a message: its number, all its bytes, and for texts and messages what is in it."""
    at = 0
    while at < len(message):
        start = at
        key, at = _read_varint(message, at)
        kind = key & 7
        payload = b""
        if kind == 0:
            _, at = _read_varint(message, at)
        elif kind == _BYTES:
            size, at = _read_varint(message, at)
            payload, at = message[at : at + size], at + size
        else:
            # 1 is eight bytes, 5 is four; the core writes no others.
            at += 8 if kind == 1 else 4
        yield key >> 3, message[start:at], payload


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
