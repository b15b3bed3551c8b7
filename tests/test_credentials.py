"""Credentials stay where they were given: no error, log, repr or manifest shows them."""

from __future__ import annotations

import logging
import os
import pickle
import socket
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import esker
from esker._native.store import Store
from esker.cli import main
from esker.commit import pickle_storage_options
from esker.delta import DeltaTable, Schema, write_deltalake
from esker.delta.log.target import WriteTarget
from esker.delta.read.filesystem import FileLocator
from esker.delta.write.plan import WriteRequest, plan_write
from esker.delta.write.staging import Staging
from esker.file import LanceFileReader
from esker.repo import Repository
from esker.spark.options import table_address
from tests.samples import people
from tests.servers import Azurite, S3Server

SECRETS = ("SECRET-0/+=secret-0", "TOKEN-1/+=token-1", "AKIDTEST2", "c2VjcmV0LWtleS0z", "sig-4-Secret")


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that takes connections and never says a word."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(16)
        yield listener.getsockname()[1]


def _told(error: BaseException) -> str:
    told = [str(error), repr(error), "".join(traceback.format_exception(error)), str(getattr(error, "facts", ""))]
    return "\n".join(told)


def _fails(run: Callable[[], Any], logged: pytest.LogCaptureFixture) -> str:
    with pytest.raises((OSError, ValueError, LookupError)) as raised:
        run()
    told = _told(raised.value) + logged.text
    for secret in SECRETS:
        assert secret not in told, told
        # Nor the parts of it that are left when somebody decodes or cuts it.
        assert secret.lower().replace("/+=", "%2f%2b%3d") not in told.lower(), told
    return told


QUICK = {"client_max_retries": "1", "client_retry_timeout": "2", "timeout": "500ms", "connect_timeout": "500ms"}


def _bad_s3(endpoint: str) -> dict[str, str]:
    return {
        **QUICK,
        "aws_access_key_id": SECRETS[2],
        "aws_secret_access_key": SECRETS[0],
        "aws_session_token": SECRETS[1],
        "aws_region": "us-east-1",
        "aws_endpoint": endpoint,
        "allow_http": "true",
    }


def _bad_azure(endpoint: str) -> dict[str, str]:
    return {
        **QUICK,
        "azure_storage_account_name": "devstoreaccount1",
        "azure_storage_account_key": SECRETS[3],
        "azure_endpoint": f"{endpoint}/devstoreaccount1",
        "allow_http": "true",
    }


def _sas_azure(endpoint: str) -> dict[str, str]:
    options = {**_bad_azure(endpoint), "azure_storage_sas_key": f"sv=2021-12-02&sp=r&sig={SECRETS[4]}"}
    del options["azure_storage_account_key"]
    return options


def _every_way(uri: str, options: dict[str, str], logged: pytest.LogCaptureFixture) -> str:
    store = Store(uri, storage_options=options)
    ways: list[Callable[[], Any]] = [
        lambda: esker.dataset(uri, storage_options=options),
        lambda: esker.write_dataset(people(1), uri, storage_options=options),
        lambda: esker.write_dataset(people(1), uri, mode="append", storage_options=options),
        lambda: LanceFileReader(f"{uri}/a.lance", storage_options=options),
        lambda: store.get("x"),
        lambda: store.put("x", b"y"),
        lambda: store.put_if_absent("x", b"y"),
        lambda: store.list(),
        lambda: store.list_first("", 5),
        lambda: store.delete("x"),
        lambda: store.head("x"),
        lambda: store.get_ranges("x", [(0, 5)]),
    ]
    return "\n".join(_fails(way, logged) for way in ways)


def test_wrong_credentials_are_not_shown(s3: S3Server, azure: Azurite, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    _every_way(f"az://{azure.container()}/t", _bad_azure(azure.server.endpoint), caplog)
    _every_way(f"az://{azure.container()}/t", _sas_azure(azure.server.endpoint), caplog)
    if s3.name == "minio":  # ministack takes everybody in
        told = _every_way(f"s3://{s3.bucket()}/t", _bad_s3(s3.endpoint), caplog)
        assert "permission denied" in told


def test_nobody_there_shows_no_credentials(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{unused.getsockname()[1]}"
        told = _every_way("s3://bucket/t", _bad_s3(endpoint), caplog)
        told += _every_way("az://container/t", _sas_azure(endpoint), caplog)
    assert "bucket/t" in told


def test_a_timeout_shows_no_credentials(silent_port: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    options = _bad_s3(f"http://127.0.0.1:{silent_port}")
    _fails(lambda: esker.dataset("s3://bucket/t", storage_options=options), caplog)
    _fails(lambda: esker.write_dataset(people(1), "s3://bucket/t", storage_options=options), caplog)


@pytest.mark.parametrize(
    "change",
    [
        {"aws_endpoint": f"https://{SECRETS[2]}:{SECRETS[4]}@host"},
        {"aws_endpoint": "nowhere"},
        {"allow_http": "perhaps"},
        {"secret_access_key": "another"},
        {"aws_session_token": SECRETS[4] + "\n"},
        {"aws_secret_access_key": SECRETS[4] + "\N{SNOWMAN}"},
        {"proxy_url": f"http://user:{SECRETS[4]}@[bad"},
    ],
)
def test_bad_options_show_no_credentials(change: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    options = {**_bad_s3("http://127.0.0.1:1"), **change}
    _fails(lambda: esker.dataset("s3://bucket/t", storage_options=options), caplog)


@pytest.mark.parametrize(
    "uri", [f"s3://{SECRETS[2]}:{SECRETS[4]}@bucket/t", f"gs://{SECRETS[4]}@bucket/t", f"az://a:{SECRETS[4]}@b/t"]
)
def test_a_password_in_a_uri_is_refused_and_not_shown_by_the_store(uri: str) -> None:
    with pytest.raises(ValueError, match="credentials belong into storage_options") as raised:
        Store(uri)
    assert SECRETS[4] not in str(raised.value)


def test_what_spark_and_the_command_line_refuse_they_do_not_repeat(capsys: pytest.CaptureFixture[str]) -> None:
    for text in (f'{{"aws_secret_access_key": "{SECRETS[0]}"', f'["{SECRETS[0]}"]'):
        with pytest.raises(ValueError, match="expected a JSON object") as raised:
            table_address({"path": "s3://b/t", "storage_options": text})
        assert SECRETS[0] not in _told(raised.value)
    address = table_address({"path": "s3://b/t", "storage_options": f'{{"aws_session_token": "{SECRETS[1]}"}}'})
    assert SECRETS[1] not in repr(address)
    assert main(["info", "s3://b/t", "--storage-option", SECRETS[0].replace("=", "")]) != 0
    printed = capsys.readouterr()
    assert SECRETS[0].replace("=", "") not in printed.err + printed.out


def test_nothing_that_is_written_or_printed_holds_credentials(s3: S3Server) -> None:
    bucket = s3.bucket()
    uri = f"s3://{bucket}/t"
    dataset = esker.write_dataset(people(20), uri, storage_options=s3.storage_options, max_rows_per_file=7)
    dataset.delete("id = 3")
    dataset.update({"name": "'x'"}, where="id = 4")
    fragment = dataset.get_fragments()[0]
    store = Store(uri, storage_options=s3.storage_options)
    printed = [dataset, fragment, fragment.metadata, dataset.scanner(), dataset._manifest, store, dataset.versions()]
    texts = [repr(thing).encode() for thing in printed] + [str(vars(dataset._log)).encode()]
    client = s3.client()
    written = [client.get_object(Bucket=bucket, Key=key)["Body"].read() for key in s3.keys(bucket)]
    assert len(written) >= 8
    for text in [*texts, *written]:
        assert s3.secret.encode() not in text
        assert s3.key.encode() not in text


def test_a_pickle_carries_credentials_unless_it_is_told_not_to(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = f"s3://{s3.bucket()}/t"
    esker.write_dataset(people(20), uri, storage_options=s3.storage_options)
    dataset = esker.dataset(uri, storage_options=s3.storage_options)
    things: list[Any] = [dataset, dataset.get_fragments()[0], Store(uri, storage_options=s3.storage_options)]
    for thing in things:
        assert s3.secret.encode() in pickle.dumps(thing)
    with pickle_storage_options(False):
        bare = [pickle.dumps(thing) for thing in things]
    for data in bare:
        assert s3.secret.encode() not in data
        assert s3.key.encode() not in data
        # What is no secret still goes along.
        assert s3.endpoint.encode() in data
    assert s3.secret.encode() in pickle.dumps(dataset)
    # The worker has credentials of its own.
    for key in ("aws_access_key_id", "aws_secret_access_key"):
        monkeypatch.setenv(key.upper(), s3.storage_options[key])
    woken = [pickle.loads(data) for data in bare]
    assert woken[0].count_rows() == woken[1].count_rows() == 20
    assert woken[2].list("_versions/")
    monkeypatch.setenv("ESKER_PICKLE_STORAGE_OPTIONS", "0")
    assert s3.secret.encode() not in pickle.dumps(dataset)
    assert os.environ["ESKER_PICKLE_STORAGE_OPTIONS"] == "0"


def test_nothing_of_a_delta_table_carries_credentials_that_are_told_to_stay(
    s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = f"s3://{s3.bucket()}/t"
    rows = people(20)
    write_deltalake(uri, rows, storage_options=s3.storage_options)
    table = DeltaTable(uri, storage_options=s3.storage_options)
    store, snapshot = table._store, table._snapshot
    incoming = Schema.from_arrow(rows.schema)
    things: list[Any] = [
        table,
        table.to_pyarrow_dataset(),
        FileLocator(store, snapshot.root, s3.storage_options),
        plan_write(WriteTarget(uri, store, snapshot, s3.storage_options), incoming, WriteRequest(mode="append")),
    ]
    for thing in things:
        assert s3.secret.encode() in pickle.dumps(thing)
        assert s3.secret not in repr(thing)
    with pickle_storage_options(False):
        bare = [pickle.dumps(thing) for thing in things]
    for data in bare:
        assert s3.secret.encode() not in data
        assert s3.key.encode() not in data
        assert s3.endpoint.encode() in data
    for key in ("aws_access_key_id", "aws_secret_access_key"):
        monkeypatch.setenv(key.upper(), s3.storage_options[key])
    woken = [pickle.loads(data) for data in bare]
    assert woken[0].count() == woken[1].count_rows() == 20
    assert woken[0].to_pyarrow_table().num_rows == 20
    assert Staging(woken[3], store).finish().rows == 0


def test_an_option_that_is_no_text_is_named_and_not_shown() -> None:
    options: Any = {"aws_secret_access_key": "x", "timeout": 4711}
    for run in (
        lambda: esker.dataset("s3://b/t", storage_options=options),
        lambda: DeltaTable("s3://b/t", storage_options=options),
        lambda: Repository("s3://b/t", storage_options=options),
    ):
        with pytest.raises(TypeError, match="'timeout' as int") as raised:
            run()
        assert "4711" not in str(raised.value)
