"""Writes the corpus of repositories' tables: `python fuzz/tables.py`. Ranges, metaranges and dumps of all shapes."""

import tempfile
from pathlib import Path

import pyarrow as pa

from esker._native.graveler import Changes, SplitRule, Storage
from esker._native.store import Store
from esker.repo import Repository
from esker.repo.objects.batches import ENTRY_SCHEMA, table

CORPUS = Path(__file__).parent / "corpus/sstable"


def entries(count: int) -> Changes:
    """Entries with all that an entry may have."""
    columns = {
        "path": [f"data/{n:06}" + "/long" * (n % 40) for n in range(count)],
        "deleted": [False] * count,
        "physical_address": [f"data/{n:020}" for n in range(count)],
        "address_type": ["full" if n % 3 else "relative" for n in range(count)],
        "size_bytes": [n << (n % 40) for n in range(count)],
        "checksum": [f"{n * 0x9E3779B97F4A7C15:032x}"[-32:] for n in range(count)],
        "mtime": [n * 10**9 for n in range(count)],
        "content_type": ["text/plain" if n % 5 == 0 else "" for n in range(count)],
        "metadata": [[("k", str(n)), ("l", "")] if n % 7 == 0 else [] for n in range(count)],
    }
    return Changes.of_entries(pa.Table.from_pydict(columns, schema=ENTRY_SCHEMA))


def main() -> None:
    """Writes all inputs."""
    CORPUS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        storage = Storage(Store(folder, durable=False))
        for count in (0, 1, 30, 3000):
            content = storage.apply(
                None, entries(count), rule=SplitRule(raggedness=2000), allow_empty=True
            ).metarange_id
            tables = {"metarange": str(content)}
            described = table(storage.ranges(content)).to_pylist()
            if described:
                tables["range"] = described[0]["id"]
            for kind, id in tables.items():
                (CORPUS / f"{kind}_{count}").write_bytes(Path(folder, "_lakefs", id).read_bytes())
        repo = Repository.create(Path(folder, "repo"), committer="fuzz")
        repo.branch("main").object("a").upload(b"x")
        repo.branch("main").commit("one", {"k": "v"}, committer="fuzz", date=1)
        refs = repo.dump_refs()
        core = Storage(Store(str(Path(folder, "repo"))))
        for kind in ("commits", "branches"):
            (described,) = table(core.ranges(getattr(refs, f"{kind}_meta_range_id"))).to_pylist()
            (CORPUS / kind).write_bytes(Path(folder, "repo/_lakefs", described["id"]).read_bytes())


if __name__ == "__main__":
    main()
