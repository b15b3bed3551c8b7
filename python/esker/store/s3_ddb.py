"""Parses `s3+ddb://bucket/path?ddbTableName=name`: a table on S3 with DynamoDB as its external manifest store."""

from __future__ import annotations

from urllib.parse import parse_qsl

from ..exceptions import InvalidArgumentError

S3_AND_DYNAMODB = "s3+ddb://"
_TABLE_NAME = "ddbTableName"


def split_s3_ddb(uri: str) -> tuple[str, str]:
    """The `s3://` URI and the name of the DynamoDB table that an `s3+ddb://` URI consists of.

    Raises:
        InvalidArgumentError: The query is not `ddbTableName=name`.

    Example:
        >>> from esker.store.s3_ddb import split_s3_ddb
        >>> split_s3_ddb("s3+ddb://lake/t.lance?ddbTableName=commits")
        ('s3://lake/t.lance', 'commits')
    """
    found = parse_qsl(uri.partition("?")[2], keep_blank_values=True)
    if len(found) != 1 or found[0][0] != _TABLE_NAME or not found[0][1]:
        raise InvalidArgumentError(
            f"expected s3+ddb://bucket/path?{_TABLE_NAME}=name and nothing else in the query, found {uri}", uri=uri
        )
    return s3_uri(uri), found[0][1]


def s3_uri(uri: str) -> str:
    """The `s3://` URI of the same path, without the query."""
    rest = uri.partition("://")[2]
    return "s3://" + rest.partition("?")[0]
