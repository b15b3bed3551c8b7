"""`esker info`: the facts of a Lance table, a Delta table or a repository."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from ..dataset import LanceDataset
from ..exceptions import InvalidArgumentError, NotFoundError
from ..store.kinds import DELTA, LANCE, REPOSITORY
from .moment import moment_of
from .output import Output, size_text
from .tables import storage_options


def info(options: Namespace, output: Output) -> None:
    """Prints the facts of a table or a repository.

    Raises:
        InvalidArgumentError: `--at` is given for a repository.
        NotFoundError: There is nothing at the URI, or no such version.
    """
    try:
        dataset = LanceDataset(options.uri, options.at, storage_options=storage_options(options))
    except NotFoundError as error:
        others = {DELTA.name: _delta, REPOSITORY.name: _repository}
        if error.found not in others:
            raise
        others[error.found](options, output)
    else:
        _tell(_lance_facts(dataset), output)


def _lance_facts(dataset: LanceDataset) -> dict[str, Any]:
    version = dataset.get_version()
    counts = version["metadata"]
    return {
        "kind": LANCE.name,
        "uri": dataset.uri,
        "version": dataset.version,
        "latest_version": dataset.latest_version,
        "committed": version["timestamp"],
        "rows": dataset.count_rows(),
        "deleted_rows": int(counts["total_deletion_file_rows"]),
        "columns": len(dataset.schema),
        "fragments": int(counts["total_fragments"]),
        "data_files": int(counts["total_data_files"]),
        "bytes": int(counts["total_files_size"]),
        "file_version": dataset.data_storage_version,
        "stable_row_ids": dataset.has_stable_row_ids,
        "config": dataset.config(),
    }


def _delta(options: Namespace, output: Output) -> None:
    from ..delta import DeltaTable

    table = DeltaTable(options.uri, storage_options=storage_options(options))
    latest = table.version()
    if options.at is not None:
        table.load_as_version(options.at)
    files = table.get_add_actions()
    # The time by which `--at` finds the version; the one that its writer noted may be earlier.
    committed = table._commit_times().get(table.version())
    metadata, protocol = table.metadata(), table.protocol()
    facts = {
        "kind": DELTA.name,
        "uri": options.uri,
        "name": metadata.name,
        "description": metadata.description,
        "version": table.version(),
        "latest_version": latest,
        "committed": None if committed is None else datetime.fromtimestamp(committed / 1000, UTC),
        "rows": table._rows_by_statistics(),
        "columns": len(table.schema().fields),
        "data_files": files.num_rows,
        "bytes": sum(files["size_bytes"].to_pylist()),
        "partition_columns": metadata.partition_columns,
        "min_reader_version": protocol.min_reader_version,
        "min_writer_version": protocol.min_writer_version,
        "features": sorted({*(protocol.reader_features or ()), *(protocol.writer_features or ())}),
        "config": metadata.configuration,
    }
    _tell(facts, output)


def _repository(options: Namespace, output: Output) -> None:
    from ..repo import Repository

    if options.at is not None:
        raise InvalidArgumentError(
            f"expected a table at {options.uri} for --at, found a repository; see esker repo log", uri=options.uri
        )
    repository = Repository(options.uri, storage_options=storage_options(options))
    properties = repository.properties
    created = properties.creation_date
    heads = {
        "branches": {branch.id: branch.get_commit() for branch in repository.branches()},
        "tags": {tag.id: tag.get_commit() for tag in repository.tags()},
    }
    facts = {
        "kind": REPOSITORY.name,
        "uri": options.uri,
        "storage_namespace": properties.storage_namespace,
        "id": repository.id,
        "created": None if created is None else datetime.fromtimestamp(created, UTC),
        "default_branch": repository.default_branch,
        "metadata": repository.metadata,
    }
    settings = asdict(repository.settings)
    if output.as_json:
        listed = {what: {name: commit.id for name, commit in found.items()} for what, found in heads.items()}
        output.json({**facts, **listed, "settings": settings})
        return
    _tell({**facts, **{what: len(found) for what, found in heads.items()}, **settings}, output)
    columns = [("", False), ("name", False), ("commit", False), ("committed", False), ("message", False)]
    rows = [
        (
            kind,
            name,
            commit.id[:12],
            moment_of(commit.creation_date, "%Y-%m-%d %H:%M:%S"),
            commit.message,
        )
        for kind, found in (("branch", heads["branches"]), ("tag", heads["tags"]))
        for name, commit in found.items()
    ]
    output.table(None, columns, rows)


def _tell(facts: Mapping[str, Any], output: Output) -> None:
    if output.as_json:
        output.json(dict(facts))
        return
    empty: tuple[Any, ...] = (None, {}, [], ())
    # Empty facts are left out, except for an unknown number of rows.
    text = {
        name.replace("_", " "): _text(name, value)
        for name, value in facts.items()
        if value not in empty or name == "rows"
    }
    output.facts(str(facts["uri"]), {name: value for name, value in text.items() if name != "uri"})


def _text(name: str, value: Any) -> str:
    if name in ("bytes", "min_range_size", "max_range_size"):
        return size_text(value)
    if name == "rows" and value is None:
        return "not told by statistics"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{key}={item}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else str(value)
