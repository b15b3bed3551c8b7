"""The servers that other tests trust: of many who put one object if there is none, one is told that it did.

A server that only seems to check (that looks, then writes) would let tables lose commits, and tests not see it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from botocore.exceptions import ClientError

from tests.servers import Azurite, S3Server
from tests.servers.azurite import ACCOUNT

WRITERS = 12
ROUNDS = 15


def _race(put: Callable[[int, int], bool]) -> list[int]:
    """How many won, in each round in which all start at once."""
    barrier = threading.Barrier(WRITERS)

    def run(writer: int) -> list[bool]:
        won = []
        for number in range(ROUNDS):
            barrier.wait(30)
            won.append(put(writer, number))
        return won

    with ThreadPoolExecutor(WRITERS) as pool:
        return [sum(won) for won in zip(*pool.map(run, range(WRITERS)), strict=True)]


def test_exactly_one_of_many_raced_puts_wins_on_s3(s3: S3Server) -> None:
    bucket = s3.bucket()
    clients = [s3.client(retries={"max_attempts": 1}) for _ in range(WRITERS)]

    def put(writer: int, number: int) -> bool:
        try:
            body = b"%d" % writer * 1000
            clients[writer].put_object(Bucket=bucket, Key=f"_versions/{number}", Body=body, IfNoneMatch="*")
        except ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] not in (409, 412):
                raise
            return False
        return True

    assert _race(put) == [1] * ROUNDS
    assert len(s3.keys(bucket, "_versions/")) == ROUNDS


def test_exactly_one_of_many_raced_puts_wins_on_azure(azure: Azurite) -> None:
    container = azure.container()

    def put(writer: int, number: int) -> bool:
        headers = {"x-ms-blob-type": "BlockBlob", "If-None-Match": "*"}
        status, body = azure.request("PUT", f"/{ACCOUNT}/{container}/v{number}", None, headers, b"%d" % writer * 1000)
        assert status in (201, 409), body
        # Not the 412 that S3 says: who takes a 409 for a passing trouble writes again.
        assert status == 201 or b"BlobAlreadyExists" in body
        return status == 201

    assert _race(put) == [1] * ROUNDS


@pytest.mark.parametrize("size", [0, 1, 70_000])
def test_an_object_is_what_was_put(s3: S3Server, size: int) -> None:
    bucket, client = s3.bucket(), s3.client()
    client.put_object(Bucket=bucket, Key="a b/%20ä", Body=b"x" * size)
    assert client.get_object(Bucket=bucket, Key="a b/%20ä")["Body"].read() == b"x" * size
    assert s3.keys(bucket) == ["a b/%20ä"]
