"""The names of staged manifests: `_versions/{name of the manifest}-{uuid}`, as in pylance.

A staged manifest is a commit if the external store has an entry with its path; otherwise it is an orphan. Readers
without an external store ignore both.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..._native.table import parse_manifest_name

NamingScheme: TypeAlias = Literal["V1", "V2"]

_STAGED = re.compile(r"(?P<name>[0-9]+\.manifest)-(?P<id>[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})", re.ASCII)


@dataclass(frozen=True)
class StagedManifest:
    """The parsed name of a staged manifest.

    Args:
        version: The version that it was staged for.
        scheme: How the table names its manifests, "V1" or "V2".
        final: The name of the manifest once it is copied.
    """

    version: int
    scheme: NamingScheme
    final: str


def staged_manifest_name(final: str) -> str:
    """A fresh name for staging the manifest whose final name is `final`.

    Example:
        >>> from esker.commit.external import staged_manifest_name
        >>> len(staged_manifest_name("7.manifest")) == len("7.manifest-") + 36
        True
    """
    return f"{final}-{uuid.uuid4()}"


def parse_staged_manifest(name: str) -> StagedManifest | None:
    """Parses a name within `_versions/`; None if it is not that of a staged manifest.

    Before a clean-up deletes a staged manifest it must ask the external store whether it is a commit that is not
    finished yet (`LanceLog.is_staged_commit`); `LanceLog.manifest` finishes such a commit.

    Example:
        >>> from esker.commit.external import parse_staged_manifest
        >>> parse_staged_manifest("7.manifest-6c6a1c16-53b4-4dd4-a4ee-b9a2dd1b3ee0")
        StagedManifest(version=7, scheme='V1', final='7.manifest')
        >>> parse_staged_manifest("7.manifest") is None
        True
    """
    match = _STAGED.fullmatch(name)
    parsed = parse_manifest_name(match["name"]) if match else None
    return StagedManifest(parsed[0], parsed[1], match["name"]) if match and parsed else None
