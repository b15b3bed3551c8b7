"""A store that takes connections and never says a word: Ctrl-C ends what reads from it, at once."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

WITHIN_S = 60
"""Requests to such a store are given up after three minutes."""
VERBS = {
    "lance": "esker.dataset(uri, storage_options=options)",
    "lance write": "esker.write_dataset(pa.table({'a': [1]}), uri, storage_options=options)",
    "delta": "DeltaTable(uri, storage_options=options)",
    "delta write": "write_deltalake(uri, pa.table({'a': [1]}), storage_options=options)",
    "repository": "Repository(uri, storage_options=options)",
}
SCRIPT = """
import signal, sys
import pyarrow as pa
import esker
from esker.delta import DeltaTable, write_deltalake
from esker.repo import Repository
uri, options = "s3://bucket/place", dict(pair.split("=", 1) for pair in sys.argv[1:])
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    VERB
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(16)
        yield listener


def _options(silent: socket.socket) -> list[str]:
    options = {
        "aws_endpoint": f"http://127.0.0.1:{silent.getsockname()[1]}",
        "allow_http": "true",
        "aws_region": "us-east-1",
        "aws_access_key_id": "a",
        "aws_secret_access_key": "b",
    }
    return [f"{key}={value}" for key, value in options.items()]


def _interrupted(silent: socket.socket, command: list[str]) -> tuple[int, str, str]:
    """Runs a command until it has asked the store, and then interrupts it."""
    # A shell's background job would ignore it.
    shell = ["env", "--default-signal=INT"]
    process = subprocess.Popen([*shell, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        silent.settimeout(WITHIN_S)
        connection, _ = silent.accept()
        with connection:
            connection.recv(1)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=WITHIN_S)
    finally:
        process.kill()
    return process.returncode, out, err


@pytest.mark.parametrize("verb", VERBS)
def test_reads_of_a_store_that_never_answers_end_at_ctrl_c(silent: socket.socket, verb: str) -> None:
    command = [sys.executable, "-c", SCRIPT.replace("VERB", VERBS[verb]), *_options(silent)]
    assert _interrupted(silent, command) == (0, "interrupted\n", "")


def test_a_command_that_is_interrupted_says_so_in_a_line(silent: socket.socket) -> None:
    options = [word for option in _options(silent) for word in ("--storage-option", option)]
    command = [sys.executable, "-m", "esker", "count", "s3://bucket/place", *options]
    assert _interrupted(silent, command) == (130, "", "error: interrupted\n")
