"""`gs://`: which requests go out, to a stub. What Google does is not proved, see `tests.servers.google_stub`."""

from __future__ import annotations

from collections.abc import Iterator

import lance
import pytest

import esker
from esker._native.store import Store
from esker.exceptions import AlreadyExistsError
from tests.samples import people
from tests.servers.google_stub import GoogleStub


@pytest.fixture
def google() -> Iterator[GoogleStub]:
    with GoogleStub() as stub:
        yield stub


def test_a_table_is_written_and_read(google: GoogleStub) -> None:
    uri = "gs://bucket/a b/ä.lance"
    options = google.storage_options
    dataset = esker.write_dataset(people(10), uri, storage_options=options)
    dataset.insert(people(5, start=10))
    dataset.delete("id = 3")
    assert esker.dataset(uri, storage_options=options).count_rows() == 14
    with pytest.raises(AlreadyExistsError):
        esker.write_dataset(people(1), uri, storage_options=options)
    manifests = [key for key in google.objects if "_versions/" in key]
    assert all(key.startswith("bucket/a b/ä.lance/_versions/") for key in manifests)
    assert len(manifests) == 3


def test_a_put_that_must_not_replace_asks_for_generation_0(google: GoogleStub) -> None:
    store = Store("gs://bucket/t", storage_options=google.storage_options)
    assert store.put_if_absent("x", b"one")
    assert not store.put_if_absent("x", b"two")
    assert store.get("x") == b"one"
    puts = [headers for method, _, headers in google.requests if method == "PUT"]
    assert [headers.get("x-goog-if-generation-match") for headers in puts] == ["0", "0"]
    assert {headers["authorization"] for headers in puts} == {"Bearer a-bearer-token"}
    store.put("x", b"three")
    assert "x-goog-if-generation-match" not in google.requests[-1][2]


def test_a_wrong_token_is_said_and_not_shown(google: GoogleStub) -> None:
    options = {**google.storage_options, "google_storage_token": "not-the-token"}
    with pytest.raises(OSError, match="AuthenticationRequired") as raised:
        esker.dataset("gs://bucket/t", storage_options=options)
    assert "not-the-token" not in str(raised.value)


def test_keys_are_those_that_pylance_writes(google: GoogleStub) -> None:
    options = google.storage_options
    for path in ("plain", "a%20b/ä"):
        lance.write_dataset(people(3), f"gs://theirs/{path}", storage_options=options)
        esker.write_dataset(people(3), f"gs://ours/{path}", storage_options=options)
        assert esker.dataset(f"gs://theirs/{path}", storage_options=options).count_rows() == 3
    names = [
        sorted(key.removeprefix(bucket) for key in google.objects if key.startswith(bucket) and "_versions" in key)
        for bucket in ("ours", "theirs")
    ]
    assert names[0] == names[1]
