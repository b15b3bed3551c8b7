"""The names of staged manifests: `{name of the manifest}-{uuid}` in `_versions/`, as pylance has them.

A staged manifest is a commit if the external store names it, and what a writer left behind if not. Readers that know
nothing of external stores take no notice of either.
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
    """What the name of a staged manifest says.

    Args:
        version: The version that it is, or wanted to be.
        scheme: How the table names its manifests, "V1" or "V2".
        final: The name of the manifest once it is copied.
    """

    version: int
    scheme: NamingScheme
    final: str


def staged_manifest_name(final: str) -> str:
    """A fresh name under which to stage the manifest that shall be `final`.

    Example:
        >>> from esker.commit.external import staged_manifest_name
        >>> len(staged_manifest_name("7.manifest")) == len("7.manifest-") + 36
        True
    """
    return f"{final}-{uuid.uuid4()}"


def parse_staged_manifest(name: str) -> StagedManifest | None:
    """What a name within `_versions/` stands for if it is a staged manifest's, else None.

    A clean-up must ask the external store whether a staged manifest is a commit that nobody has finished yet
    (`LanceLog.listing` does, and `LanceLog.manifest` finishes it) before it takes one for garbage.

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
