"""An external manifest store in Redis.

Two keys per table; the braces put both in one slot of a cluster:

```
{prefix}{{base uri}}:paths      a hash: version -> {"path": ..., "size": ..., "e_tag": ...}
{prefix}{{base uri}}:versions   a sorted set of the versions
```
"""

from __future__ import annotations

import json
from typing import Any

from ...exceptions import CorruptFileError, IOFailedError, UnsupportedError
from ...store.pickling import pickled_url
from ...store.secrets import redacted, without_password
from .store import ManifestEntry

# Redis runs a script atomically.
_PUT_IF_NOT_EXISTS = """
if redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[2]) == 0 then return 0 end
redis.call('ZADD', KEYS[2], ARGV[1], ARGV[1])
return 1
"""
_PUT_IF_EXISTS = """
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return 1
"""
_LATEST = """
local last = redis.call('ZREVRANGE', KEYS[2], 0, 0)
if #last == 0 then return false end
return {last[1], redis.call('HGET', KEYS[1], last[1])}
"""


class RedisManifestStore:
    """An `ExternalManifestStore` in Redis, or in a server that speaks its protocol and runs Lua scripts.

    The commits are as durable as the server: it must sync an append-only file at each write (`appendonly yes`,
    `appendfsync always`) and must never evict (`maxmemory-policy noeviction`). A fail-over to a replica may lose the
    last commits.

    Args:
        url: The server: `redis://user:password@host:6379/0`, `rediss://` for TLS, `unix:///path`. Pickles carry it, see
            `pickle_storage_options`.
        prefix: The prefix of all keys.
        **options: Further arguments of `redis.Redis.from_url`.

    Raises:
        UnsupportedError: The package redis is not installed: `pip install 'esker[redis]'`.
        IOFailedError: (any method) The server did not answer, or refused.

    Example:
        `esker.write_dataset(table, uri, manifest_store=RedisManifestStore("redis://localhost"))`
    """

    def __init__(self, url: str, *, prefix: str = "esker:manifests:", **options: Any) -> None:
        self.url = url
        self.prefix = prefix
        self.options = options
        self._client: Any = None

    def __repr__(self) -> str:
        return f"RedisManifestStore({without_password(self.url)!r}, prefix={self.prefix!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "url": pickled_url(self.url), "_client": None}

    def get(self, base_uri: str, version: int) -> ManifestEntry | None:
        """See `ExternalManifestStore.get`."""
        value = self._call("hget", self._keys(base_uri)[0], str(version))
        return self._entry(version, value)

    def get_latest(self, base_uri: str) -> ManifestEntry | None:
        """See `ExternalManifestStore.get_latest`."""
        found = self._call("eval", _LATEST, 2, *self._keys(base_uri))
        return self._entry(int(found[0]), found[1]) if found else None

    def put_if_not_exists(self, base_uri: str, version: int, path: str, size: int, e_tag: str | None = None) -> bool:
        """See `ExternalManifestStore.put_if_not_exists`."""
        return self._put(_PUT_IF_NOT_EXISTS, base_uri, version, path, size, e_tag)

    def put_if_exists(self, base_uri: str, version: int, path: str, size: int, e_tag: str | None = None) -> bool:
        """See `ExternalManifestStore.put_if_exists`."""
        return self._put(_PUT_IF_EXISTS, base_uri, version, path, size, e_tag)

    def delete(self, base_uri: str) -> None:
        """See `ExternalManifestStore.delete`."""
        self._call("delete", *self._keys(base_uri))

    def _put(self, script: str, base_uri: str, version: int, path: str, size: int, e_tag: str | None) -> bool:
        value = json.dumps({"path": path, "size": size, "e_tag": e_tag})
        return bool(self._call("eval", script, 2, *self._keys(base_uri), str(version), value))

    def _keys(self, base_uri: str) -> tuple[str, str]:
        # A closing brace would end the hash tag, the part of the key that decides the slot.
        tag = base_uri.replace("%", "%25").replace("{", "%7B").replace("}", "%7D")
        return f"{self.prefix}{{{tag}}}:paths", f"{self.prefix}{{{tag}}}:versions"

    def _entry(self, version: int, value: Any) -> ManifestEntry | None:
        if value is None:
            return None
        try:
            fields = json.loads(value)
            return ManifestEntry(version, str(fields["path"]), fields.get("size"), fields.get("e_tag"))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CorruptFileError(
                f"{self!r} has no entry of esker for version {version}: expected a JSON object with a path",
                version=version,
            ) from error

    def _call(self, verb: str, *arguments: Any) -> Any:
        try:
            import redis
        except ImportError as error:
            raise UnsupportedError("expected the package redis, found none: pip install 'esker[redis]'") from error
        try:
            if self._client is None:
                self._client = redis.Redis.from_url(self.url, **{"socket_timeout": 30.0, **self.options})
            return getattr(self._client, verb)(*arguments)
        except (redis.RedisError, ValueError, OSError) as error:
            raise IOFailedError(
                f"{self!r} failed: {redacted(str(error), self.url)}; look at the server, and try again"
            ) from None
