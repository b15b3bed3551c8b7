"""Write the golden manifests of this folder anew, with the pylance that is installed.

Run it only to add a file: a golden file that changes no longer shows what an older release wrote.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import lance
import pyarrow as pa


def keep(table: Path, name: str) -> None:
    """Copy the manifest of the table's latest version, unless the golden file is there already."""
    latest = min((table / "_versions").glob("*.manifest"))
    target = Path(__file__).parent / f"{name}.manifest"
    if not target.exists():
        shutil.copyfile(latest, target)
        sys.stdout.write(f"{target.name}: {target.stat().st_size} bytes\n")


def rows() -> pa.Table:
    """Two columns and the Arrow schema's own metadata."""
    table = pa.table({"a": pa.array([1, 2, 3], pa.int64()), "s": ["x", "y", None]})
    return table.replace_schema_metadata({"k": "v"})


def main() -> None:
    """Write one table per feature and keep its manifest."""
    root = Path(tempfile.mkdtemp(prefix="golden-"))
    for version in ["2.0", "2.1", "2.2"]:
        lance.write_dataset(rows(), root / version, data_storage_version=version)
        keep(root / version, "created_" + version.replace(".", "_"))

    lance.write_dataset(rows().slice(0, 0), root / "empty", data_storage_version="2.0")
    keep(root / "empty", "no_fragments")

    carried = root / "carried"
    lance.write_dataset(rows(), carried, data_storage_version="2.0")
    lance.write_dataset(rows(), carried, data_storage_version="2.0", mode="append")
    dataset = lance.dataset(carried)
    dataset.update_config({"owner": "golden"})
    dataset.update_metadata({"about": "golden"})
    dataset.create_scalar_index("a", "BTREE")
    dataset.delete("a = 2")
    keep(carried, "index_config_metadata_deletions")
    lance.write_dataset(rows(), carried, mode="overwrite")
    keep(carried, "overwritten")

    nested = pa.table({"v": pa.array([[1.0] * 4], pa.list_(pa.float32(), 4)), "n": [{"x": 1, "l": [{"y": "z"}]}]})
    lance.write_dataset(nested, root / "nested", data_storage_version="2.0")
    keep(root / "nested", "nested_schema")

    stable = root / "stable"
    lance.write_dataset(rows(), stable, data_storage_version="2.0", enable_stable_row_ids=True)
    keep(stable, "stable_row_ids")

    lance.dataset(root / "2.0").shallow_clone(root / "clone", 1)
    keep(root / "clone", "base_paths")

    branch = lance.dataset(root / "2.0").create_branch("side")
    lance.write_dataset(rows(), branch, mode="append")
    keep(root / "2.0" / "tree" / "side", "branch")

    mixed = root / "mixed"
    lance.write_dataset(rows(), mixed, data_storage_version="2.0")
    lance.write_dataset(rows(), mixed, data_storage_version="2.1", mode="append")
    keep(mixed, "mixed_file_versions")


if __name__ == "__main__":
    main()
