"""External manifest stores: databases that provide put-if-absent of manifests where the object store has none."""

from .address import base_uri_of, open_manifest_store
from .dynamodb import DynamoDBManifestStore
from .manifests import ExternalManifests
from .naming import StagedManifest, parse_staged_manifest, staged_manifest_name
from .postgres import PostgresManifestStore
from .redis import RedisManifestStore
from .sqlite import SqliteManifestStore
from .store import ExternalManifestStore, ManifestEntry

__all__ = [
    "DynamoDBManifestStore",
    "ExternalManifestStore",
    "ExternalManifests",
    "ManifestEntry",
    "PostgresManifestStore",
    "RedisManifestStore",
    "SqliteManifestStore",
    "StagedManifest",
    "base_uri_of",
    "open_manifest_store",
    "parse_staged_manifest",
    "staged_manifest_name",
]
