"""A table of features: written once, upserted every day, read as it was on any of them.

python examples/features.py [folder]
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa

import esker

SCHEMA = pa.schema([("user", pa.int64()), ("visits", pa.int32()), ("embedding", pa.list_(pa.float32(), 4))])


def day(users: range, visits: int) -> pa.Table:
    """The features that one day's job computes."""
    rows = {"user": users, "visits": [visits] * len(users), "embedding": [[user / 8, 0, 0, visits] for user in users]}
    return pa.table(rows, schema=SCHEMA)


def main(folder: Path) -> None:
    """Two days of a features table, and back."""
    uri = folder / "features.lance"
    # Rows keep their ids through upserts, so that a training set can name them.
    monday = esker.write_dataset(day(range(1000), visits=1), uri, enable_stable_row_ids=True)

    # On Tuesday users 900 to 1099 were seen: a hundred are new. An upsert is one version.
    tuesday = day(range(900, 1100), visits=2)
    upsert = esker.dataset(uri).merge_insert("user").when_matched_update_all().when_not_matched_insert_all()
    print("tuesday:", upsert.execute(tuesday))

    features = esker.dataset(uri)

    # What changed since Monday, by row id.
    changes = features.delta(compared_against=monday.version)
    inserted, updated = changes.get_inserted_rows().read_all(), changes.get_updated_rows().read_all()
    print(f"since monday: {inserted.num_rows} inserted, {updated.num_rows} updated")

    # A column that is computed from the others.
    features.add_columns({"is_regular": "visits > 1"})
    print(f"{features.count_rows('visits > 1')} regular users of {features.count_rows()}")

    # Any version stays readable until a clean-up; one of them comes back by a restore.
    was = esker.dataset(uri, version=monday.version)
    print(f"on monday there were {was.count_rows()} users, none regular: {was.count_rows('visits > 1')}")
    was.restore()
    print(f"version {esker.dataset(uri).version} is monday's again: {esker.dataset(uri).count_rows()} users")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
