"""An external manifest store in DynamoDB, in pylance's layout for `s3+ddb://`.

| attribute | type | meaning |
|---|---|---|
| `base_uri` | string, partition key | the table's path within its bucket, without a slash at either end |
| `version` | number, sort key | the version |
| `path` | string | base URI, `/_versions/` and the name of the manifest |
| `size` | number | size of the manifest in bytes; may be absent |
| `e_tag` | string | may be absent |
| `committer` | string | which library put the entry |
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ...exceptions import CorruptFileError, InvalidArgumentError, IOFailedError, NotFoundError, UnsupportedError
from ...store.pickling import pickled_options
from .store import ManifestEntry

_KEYS = {("base_uri", "HASH"), ("version", "RANGE")}
# pylance puts detached versions here, too, and then takes them for the latest. They are not part of the history.
_FIRST_DETACHED = 1 << 63
# Tables whose key schema this process has checked already.
_checked: set[tuple[str, str]] = set()
_CREDENTIALS = {
    "access_key_id": "aws_access_key_id",
    "secret_access_key": "aws_secret_access_key",
    "session_token": "aws_session_token",
    "token": "aws_session_token",
    "region": "region_name",
    "default_region": "region_name",
    "dynamodb_endpoint": "endpoint_url",
}


class DynamoDBManifestStore:
    """An `ExternalManifestStore` in a DynamoDB table that pylance's writers of `s3+ddb://` may share.

    The table must exist, with the partition key `base_uri` (string) and the sort key `version` (number).
    All reads are strongly consistent.

    Args:
        table_name: The DynamoDB table.
        storage_options: Credentials, region and endpoint under the names of the object store's options
            (`aws_access_key_id`, `aws_secret_access_key`, `aws_session_token`, `aws_region`, `dynamodb_endpoint`);
            boto3 finds missing ones as it always does. Pickles carry them as
            `esker.commit.pickle_storage_options` says.

    Raises:
        InvalidArgumentError: (first use) The table has other keys.
        NotFoundError: (first use) There is no such table.
        UnsupportedError: (first use) The package boto3 is not installed: `pip install 'esker[dynamodb]'`.
        IOFailedError: (any method) DynamoDB did not answer, or refused.

    Example:
        `esker.dataset("s3+ddb://bucket/flights.lance?ddbTableName=commits")` creates one.
    """

    def __init__(self, table_name: str, storage_options: Mapping[str, str] | None = None) -> None:
        self.table_name = table_name
        self.storage_options = dict(storage_options or {})
        self._client: Any = None
        self._process = 0

    def __repr__(self) -> str:
        return f"DynamoDBManifestStore({self.table_name!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_client": None, "storage_options": pickled_options(self.storage_options)}

    def get(self, base_uri: str, version: int) -> ManifestEntry | None:
        """See `ExternalManifestStore.get`."""
        found = self._call("get_item", Key=_key(base_uri, version), ConsistentRead=True)
        return self._entry(found.get("Item"))

    def get_latest(self, base_uri: str) -> ManifestEntry | None:
        """See `ExternalManifestStore.get_latest`."""
        found = self._call(
            "query",
            KeyConditionExpression="base_uri = :base_uri AND version < :end",
            ExpressionAttributeValues={":base_uri": {"S": base_uri}, ":end": {"N": str(_FIRST_DETACHED)}},
            ConsistentRead=True,
            ScanIndexForward=False,
            Limit=1,
        )
        return self._entry(next(iter(found.get("Items", ())), None))

    def put_if_not_exists(self, base_uri: str, version: int, path: str, size: int, e_tag: str | None = None) -> bool:
        """See `ExternalManifestStore.put_if_not_exists`."""
        condition = "attribute_not_exists(base_uri) AND attribute_not_exists(version)"
        return self._put(condition, base_uri, version, path, size, e_tag)

    def put_if_exists(self, base_uri: str, version: int, path: str, size: int, e_tag: str | None = None) -> bool:
        """See `ExternalManifestStore.put_if_exists`."""
        condition = "attribute_exists(base_uri) AND attribute_exists(version)"
        return self._put(condition, base_uri, version, path, size, e_tag)

    def delete(self, base_uri: str) -> None:
        """See `ExternalManifestStore.delete`."""
        more: dict[str, Any] = {}
        while True:
            found = self._call(
                "query",
                KeyConditionExpression="base_uri = :base_uri",
                ExpressionAttributeValues={":base_uri": {"S": base_uri}},
                ConsistentRead=True,
                **more,
            )
            for item in found.get("Items", ()):
                self._call("delete_item", Key={"base_uri": item["base_uri"], "version": item["version"]})
            if "LastEvaluatedKey" not in found:
                return
            more = {"ExclusiveStartKey": found["LastEvaluatedKey"]}

    def _put(self, condition: str, base_uri: str, version: int, path: str, size: int, e_tag: str | None) -> bool:
        item = {**_key(base_uri, version), "path": {"S": path}, "size": {"N": str(size)}, "committer": {"S": "esker"}}
        if e_tag is not None:
            item["e_tag"] = {"S": e_tag}
        return self._call("put_item", Item=item, ConditionExpression=condition) is not None

    def _entry(self, item: Mapping[str, Any] | None) -> ManifestEntry | None:
        if item is None:
            return None
        try:
            size = item.get("size", {}).get("N")
            return ManifestEntry(
                int(item["version"]["N"]),
                item["path"]["S"],
                None if size is None else int(size),
                item.get("e_tag", {}).get("S"),
            )
        except (KeyError, ValueError, AttributeError) as error:
            raise CorruptFileError(
                f"the DynamoDB table {self.table_name} has an entry without a version (a number) or a path (a string); "
                "expected one that a Lance library put",
                expected="version, path",
            ) from error

    def _call(self, verb: str, **arguments: Any) -> Any:
        """DynamoDB's reply, None if the condition of the call did not hold."""
        try:
            from botocore.exceptions import BotoCoreError, ClientError
        except ImportError as error:
            raise UnsupportedError("expected the package boto3, found none: pip install 'esker[dynamodb]'") from error
        try:
            return getattr(self._connected(), verb)(TableName=self.table_name, **arguments)
        except (ClientError, BotoCoreError) as error:
            code = error.response["Error"].get("Code") if isinstance(error, ClientError) else None
            if code == "ConditionalCheckFailedException":
                return None
            if code == "ResourceNotFoundException":
                raise NotFoundError(
                    f"no DynamoDB table {self.table_name}: expected one with the partition key base_uri (string) and "
                    "the sort key version (number), create it"
                ) from None
            raise IOFailedError(f"the DynamoDB table {self.table_name} failed in {verb}: {error}") from None

    def _connected(self) -> Any:
        # A forked process must not share its parent's connections: it makes a client of its own.
        if self._client is None or self._process != os.getpid():
            import boto3
            from botocore.config import Config

            retries: Any = {"max_attempts": 4, "mode": "standard"}
            config = Config(retries=retries, connect_timeout=10, read_timeout=30)
            client: Any = boto3.session.Session().client("dynamodb", config=config, **self._credentials())
            place = (client.meta.endpoint_url, self.table_name)
            if place not in _checked:
                self._check_keys(client.describe_table(TableName=self.table_name)["Table"]["KeySchema"])
                _checked.add(place)
            self._client, self._process = client, os.getpid()
        return self._client

    def _credentials(self) -> dict[str, str]:
        found: dict[str, str] = {}
        if endpoint := os.environ.get("DYNAMODB_ENDPOINT"):
            found["endpoint_url"] = endpoint
        if region := os.environ.get("AWS_REGION"):
            # As the store of the data has it; boto3 reads AWS_DEFAULT_REGION alone.
            found["region_name"] = region
        for name, value in self.storage_options.items():
            known = _CREDENTIALS.get(name.lower().removeprefix("aws_"))
            if known is not None:
                found[known] = value
        return found

    def _check_keys(self, schema: list[dict[str, str]]) -> None:
        keys = {(key["AttributeName"], key["KeyType"]) for key in schema}
        if keys != _KEYS:
            raise InvalidArgumentError(
                f"expected the DynamoDB table {self.table_name} to have the partition key base_uri and the sort key "
                f"version, found {', '.join(sorted(name for name, _ in keys))}; name another table"
            )


def _key(base_uri: str, version: int) -> dict[str, dict[str, str]]:
    return {"base_uri": {"S": base_uri}, "version": {"N": str(version)}}
