"""Functions of pyarrow that take datasets, scanners and fragments: each works or raises, none ends the process.

They go to the C++ object behind a dataset without asking. They run in another process, which no signal may end.
"""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pyarrow.dataset as pds
import pytest

import esker

_START = """
import sys, tempfile
import pyarrow as pa, pyarrow.acero as acero, pyarrow.compute as pc, pyarrow.dataset as pds, pyarrow.parquet as pq
import esker
table = pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]})
dataset = esker.write_dataset(table, "memory://functions", max_rows_per_file=2)
fragment = dataset.get_fragments()[0]
scanner = dataset.scanner(filter="id > 1")
plain = pds.dataset(table)
folder = tempfile.mkdtemp()
"""

WORKS = {
    "write a dataset": (
        "pds.write_dataset(dataset, folder, format='parquet'); assert pq.read_table(folder).num_rows == 3"
    ),
    "write a scanner": (
        "pds.write_dataset(scanner, folder, format='parquet'); assert pq.read_table(folder).num_rows == 2"
    ),
    "write a scanner as feather": "pds.write_dataset(scanner, folder, format='feather')",
    "read a scanner's stream": "assert pa.table(scanner).num_rows == 2",
    "read a scanner's stream in batches": "assert pa.RecordBatchReader.from_stream(scanner).read_all().num_rows == 2",
    "scan a reader": "assert pds.Scanner.from_batches(scanner.to_reader()).to_table().num_rows == 2",
    "scan a scanner's stream": "assert pds.Scanner.from_batches(scanner, columns=['id']).to_table().num_rows == 2",
    "join its rows": "assert plain.join(pds.dataset(dataset.to_table(columns=['id'])), 'id').to_table().num_rows == 3",
    "an Acero source of its rows": (
        "source = acero.RecordBatchReaderSourceNodeOptions(scanner.to_reader()); "
        "assert acero.Declaration('record_batch_reader_source', source).to_table().num_rows == 2"
    ),
}

RAISES = {
    "Scanner.from_dataset": "pds.Scanner.from_dataset(dataset)",
    "Scanner.from_dataset with options": "pds.Scanner.from_dataset(dataset, columns=['id'], filter=pc.field('id') > 1)",
    "Scanner.from_fragment": "pds.Scanner.from_fragment(fragment)",
    "join with it": "plain.join(dataset, 'id')",
    "join of it": "dataset.join(plain, 'id')",
    "join_asof with it": "plain.join_asof(dataset, 'id', [], 1)",
    "join_asof of it": "dataset.join_asof(plain, 'id', [], 1)",
    "an Acero scan": "acero.Declaration('scan', acero.ScanNodeOptions(dataset)).to_table()",
    "a union": "pds.dataset([dataset, dataset])",
    "a union with another": "pds.dataset([plain, dataset])",
    "UnionDataset": "pds.UnionDataset(dataset.schema, [dataset])",
    "FileSystemDataset": "pds.FileSystemDataset([fragment], table.schema, pds.ParquetFileFormat())",
    "filter": "dataset.filter(pc.field('id') > 1)",
    "sort_by": "dataset.sort_by('id')",
    "replace_schema": "dataset.replace_schema(table.schema)",
    "the base class's filter": "pds.Dataset.filter(dataset, pc.field('id') > 1).to_table()",
    "the base class's scanner": "pds.Dataset.scanner(dataset)",
    "the base class's to_table": "pds.Dataset.to_table(dataset)",
    "the base class's to_batches": "list(pds.Dataset.to_batches(dataset))",
    "the base class's head": "pds.Dataset.head(dataset, 1)",
    "the base class's take": "pds.Dataset.take(dataset, [0])",
    "the base class's count_rows": "pds.Dataset.count_rows(dataset)",
    "the base class's sort_by": "pds.Dataset.sort_by(dataset, 'id')",
    "the base class's join": "pds.Dataset.join(dataset, plain, 'id')",
    "a scanner's take": "scanner.take([0])",
    "the partition of a fragment": "fragment.partition_expression",
    "the partition of a dataset": "dataset.partition_expression",
}


def _run(code: str) -> subprocess.CompletedProcess[str]:
    # Many in one: a process takes a second to start.
    program = f"{_START}\n{code}"
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)


def _each(cases: dict[str, str]) -> str:
    """A program that runs all cases, and says before each which it is: the last one said is the one that killed it."""
    return f"""
for name, code in {cases!r}.items():
    print(f"at {{name}}", flush=True)
    folder = tempfile.mkdtemp()
    try:
        exec(code)
    except Exception as error:
        print(f"{{name}} raised {{type(error).__name__}}: {{error}}", flush=True)
    else:
        print(f"{{name}} worked", flush=True)
"""


def _outcomes(cases: dict[str, str]) -> str:
    done = _run(_each(cases))
    assert done.returncode == 0, f"{done.stdout.splitlines()[-1:]} ended the process: {done.returncode}\n{done.stderr}"
    return done.stdout


def test_what_takes_a_stream_of_rows_works() -> None:
    told = _outcomes(WORKS)
    for name in WORKS:
        assert f"{name} worked" in told, told


def test_what_scans_by_itself_raises() -> None:
    told = _outcomes(RAISES)
    for name in RAISES:
        assert f"{name} raised" in told, told
    assert "Scanner.from_dataset raised UnsupportedError: pyarrow cannot scan a LanceDataset by itself, pass it" in told
    assert "join with it raised UnsupportedError: pyarrow cannot scan a LanceDataset by itself" in told


@pytest.mark.parametrize("code", ["pds.Scanner.from_dataset(dataset)", "plain.join(dataset, 'id')"])
def test_the_peer_still_ends_the_process(code: str) -> None:
    start = """
import tempfile, lance, pyarrow as pa, pyarrow.dataset as pds
dataset = lance.write_dataset(pa.table({"id": [1]}), tempfile.mkdtemp() + "/t")
plain = pds.dataset(pa.table({"id": [1]}))
"""
    done = subprocess.run([sys.executable, "-c", f"{start}\n{code}"], capture_output=True, check=False)
    assert done.returncode < 0


def test_objects_are_instances_of_pyarrows_classes() -> None:
    dataset = esker.write_dataset(pa.table({"id": [1]}), "memory://instances")
    assert isinstance(dataset, pds.Dataset)
    assert isinstance(dataset.scanner(), pds.Scanner)
    assert isinstance(dataset.scanner(), esker.LanceScanner)
    assert isinstance(dataset.get_fragments()[0], pds.Fragment)
    assert isinstance(dataset.get_fragments()[0], esker.LanceFragment)
