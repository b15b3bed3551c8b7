"""Whether anything names the files of a lost result, which others may have committed as well."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain, pairwise

from ..._native.table import Manifest, Transaction, parse_manifest_name
from ...exceptions import CorruptFileError, NotFoundError
from ..cleanup.refs import branch_manifests, read_refs
from ..log import TRANSACTIONS, VERSIONS, LanceLog, is_detached, transaction_uuid
from ..refs.places import main_log
from ..stray import numbers_come_once
from ..version import TableVersion
from .results import RewriteResult


def is_unnamed(table: TableVersion, log: LanceLog, result: RewriteResult, own: Collection[str] = ()) -> bool:
    """Whether it is certain that no version has files of a result: in the history, on a branch, or beside both; and
    that none will: no other transaction of them waits.

    It is not if a version is gone, or if a number was given twice: a version that was there may have been restored, or
    have begun a branch.

    Args:
        table: The table.
        log: The log that the result was to be committed to.
        result: The result.
        own: The uuids of our transactions of it, which were refused.

    Example:
        `is_unnamed(table, table.log, result)`
    """
    # A writer that sleeps in its put may put to a number that a clean-up makes free later, for another one to restore.
    if _is_staged(log, result, own):
        return False
    listing = log.listing()
    after = [number for number in listing.versions if number > result.read_version]
    if len(after) != listing.latest - result.read_version or not _put_in_order(log, after):
        return False
    names = {path.rpartition("/")[2] for path in result.files}
    manifests = [log.path_of(number, listing.scheme) for number in after]
    manifests += [path for path in log.store.list_paths(VERSIONS) if path.startswith(f"{VERSIONS}d")]
    ours = (Manifest.decode(log.store.get(path), path) for path in manifests)
    main = main_log(table).store
    found = read_refs(main, table.manifest.branch)
    others = [*found.others, *(branch.name for branch in found.branches)]
    theirs = (manifest for name in set(others) for manifest in branch_manifests(main, name))
    return all(names.isdisjoint(_names(manifest)) for manifest in chain(ours, theirs))


def _is_staged(log: LanceLog, result: RewriteResult, own: Collection[str]) -> bool:
    for path in log.store.list_paths(TRANSACTIONS):
        name = path.removeprefix(TRANSACTIONS)
        if not name.startswith(f"{result.read_version}-") or transaction_uuid(name) in own:
            continue
        try:
            transaction = Transaction.decode(log.store.get(path))
        except NotFoundError:
            continue
        except CorruptFileError:
            return True
        if transaction.operation == "Rewrite" and not result.files.isdisjoint(written(transaction)):
            return True
    return False


def written(transaction: Transaction) -> set[str]:
    """The files that a Rewrite brings.

    Args:
        transaction: The Rewrite.

    Example:
        `written(transaction)`
    """
    groups = transaction.decoded().fields()["groups"]
    return {file.location for _, new in groups for fragment in new for file in fragment.files}


def _put_in_order(log: LanceLog, versions: Sequence[int]) -> bool:
    """Whether each version was put before the next one, by the store's clock."""
    if numbers_come_once(log):
        return True
    put: dict[int, int | None] = {}
    for meta in log.store.list(VERSIONS):
        parsed = parse_manifest_name(meta.path.removeprefix(VERSIONS))
        if parsed is not None and not is_detached(parsed[0]):
            put[parsed[0]] = meta.last_modified_us
    times = [put.get(version) for version in versions]
    return all(one is not None and other is not None and one <= other for one, other in pairwise(times))


def _names(manifest: Manifest) -> set[str]:
    return {file.path.rpartition("/")[2] for fragment in manifest.fragments() for file in fragment.files}
