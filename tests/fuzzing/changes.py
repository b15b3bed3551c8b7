"""Random changes of random tables: by us on one copy, by pylance on another, and by a plain model; all must agree.

    python -m tests.fuzzing.changes --cases 1000 --first-seed 0

A failure names its seed and all steps that led to it; `--first-seed SEED --cases 1` runs it again. Where the peer is
wrong, `change_faults` says so by name, and our own change is made on both copies.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance

import esker
from esker.exceptions import EskerError
from tests.fuzzing.change_faults import known_fault, refusal
from tests.fuzzing.change_steps import Step, Steps
from tests.fuzzing.conditions import DoesNotFit
from tests.fuzzing.plain_table import PlainTable, Refused, as_multiset
from tests.fuzzing.random_rows import RandomRows

VERSIONS = ["0.1", "2.0", "2.1", "2.1", "2.2"]
HIDING_OPTIONS: list[dict[str, Any]] = [
    {"filter": "k IS NULL"},
    {"limit": 1, "offset": 1},
    {"columns": ["k"]},
    {"with_row_id": True, "with_row_address": True},
    {"columns": {"other": "1"}, "batch_size": 2},
]
"""Default scan options of the datasets that we change: none may hide anything from a change."""


class CaseFailed(AssertionError):
    """A case whose tables are not what they should be."""


@dataclass
class Moment:
    """A version of both copies, and what it holds."""

    versions: tuple[int, int]
    plain: PlainTable


class Case:
    """One table and some changes.

    Args:
        seed: All that is random comes from it.
        folder: Where its tables lie.
    """

    def __init__(self, seed: int, folder: Path) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.version = self.random.choice(VERSIONS)
        self.stable = self.version != "0.1" and self.random.random() < 0.5
        self.rows = RandomRows(seed, self.version)
        self.uris = [str(folder / f"{seed}-{name}") for name in ("ours", "theirs")]
        self.hidden = self.random.choice(HIDING_OPTIONS) if self.random.random() < 0.3 else None
        self.log: list[str] = []
        self.faults: Counter[str] = Counter()

    def run(self) -> None:
        """Makes the table and changes it.

        Raises:
            CaseFailed: Something is not as it should be.
        """
        try:
            self._run()
        except (CaseFailed, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            # A panic within the peer is no Exception.
            raise CaseFailed(self._told(f"{type(error).__name__}: {error}")) from error

    def _run(self) -> None:
        rows = self.rows.rows(self.rows.schema(self.random.randint(1, 4)), self.random.choice([0, 1, 5, 20]))
        options: dict[str, Any] = {
            "max_rows_per_file": self.random.choice([2, 3, 7, 100]),
            "data_storage_version": "legacy" if self.version == "0.1" else self.version,
            "enable_stable_row_ids": self.stable,
        }
        self.log.append(
            f"write {rows.num_rows} rows of {dict(zip(rows.schema.names, rows.schema.types, strict=True))} {options}"
        )
        for uri in self.uris:
            maker = lance if self.random.random() < 0.5 else esker
            self.log.append(f"  by {maker.__name__}")
            try:
                maker.write_dataset(rows, uri, **options)
            except OSError as error:
                self._stepped_around(error, maker)
                shutil.rmtree(uri, ignore_errors=True)
                esker.write_dataset(rows, uri, **options)
        plain = PlainTable(rows.schema, rows.to_pylist())
        self.history = [Moment((1, 1), plain.copy())]
        steps = Steps(self.random, self.rows)
        for _ in range(self.random.choice([1, 2, 3, 4])):
            plain = self._step(steps.draw(plain, len(self.history)), plain)
        self._check_all(plain)

    def _step(self, step: Step, plain: PlainTable) -> PlainTable:
        self.log.append(step.text)
        after = plain.copy()
        try:
            expected = step.plain(after, self.history)
        except (Refused, DoesNotFit) as refused:
            self._must_refuse(step, refused)
            return plain
        makers: list[Any] = [esker, lance]
        if self.random.random() < 0.3:
            makers.reverse()
        for side, maker in enumerate(makers):
            found = self._change(step, side, maker, plain)
            if found is not None and found != expected:
                raise CaseFailed(self._told(f"{maker.__name__} said {found}, expected {expected}"))
        versions = (esker.dataset(self.uris[0]).version, esker.dataset(self.uris[1]).version)
        self.history.append(Moment(versions, after.copy()))
        for uri in self.uris:
            self._check(uri, after, [esker])
        return after

    def _change(self, step: Step, side: int, maker: Any, plain: PlainTable) -> Any:
        if maker is lance:
            fault = known_fault(step, plain)
            if fault is not None:
                self.faults[fault] += 1
                maker = esker
        self.log.append(f"  by {maker.__name__}")
        if maker is esker:
            return self._ours(step, side)
        try:
            return step.real(lance.dataset(self.uris[side]), lance, side, self.history)
        except (OSError, ValueError) as error:
            self._stepped_around(error, maker)
            return self._ours(step, side)

    def _ours(self, step: Step, side: int) -> Any:
        dataset = esker.dataset(self.uris[side], default_scan_options=self.hidden)
        return step.real(dataset, esker, side, self.history)

    def _stepped_around(self, error: Exception, maker: Any) -> None:
        """Counts what the peer refuses by a known fault, which we do in its place; raises everything else."""
        fault = refusal(error) if maker is lance else None
        if fault is None:
            raise error
        self.log.append(f"  which fails: {fault}")
        self.faults[fault] += 1

    def _must_refuse(self, step: Step, why: Exception) -> None:
        before = esker.dataset(self.uris[0]).version
        try:
            found = self._ours(step, 0)
        except EskerError:
            if esker.dataset(self.uris[0]).version != before:
                raise CaseFailed(self._told("a change that was refused made a version")) from None
            return
        raise CaseFailed(self._told(f"expected a refusal ({why}), found {found}"))

    def _check_all(self, plain: PlainTable) -> None:
        for uri in self.uris:
            self._check(uri, plain, [esker, lance])
            self._validate(uri)
        if self.stable and all(one.versions[0] == one.versions[1] for one in self.history):
            self._check_lineage(plain)

    def _check_lineage(self, plain: PlainTable) -> None:
        columns = [*plain.schema.names, "_row_created_at_version", "_row_last_updated_at_version"]
        made = [esker.dataset(uri).to_table(columns=columns).to_pylist() for uri in self.uris]
        if as_multiset(made[0], columns) != as_multiset(made[1], columns):
            raise CaseFailed(self._told(f"versions of rows differ: {made[0]} and {made[1]}"))
        ids = esker.dataset(self.uris[0]).to_table(columns=["_rowid"])["_rowid"].to_pylist()
        if len(set(ids)) != len(ids):
            raise CaseFailed(self._told(f"a row id comes twice: {ids}"))

    def _validate(self, uri: str) -> None:
        esker.dataset(uri).validate()
        try:
            lance.dataset(uri).validate()
        except (OSError, ValueError) as error:
            self._stepped_around(error, lance)

    def _check(self, uri: str, plain: PlainTable, readers: list[Any]) -> None:
        wanted = plain.multiset()
        texts = []
        for reader in readers:
            try:
                found = reader.dataset(uri).to_table()
            except (OSError, ValueError) as error:
                self._stepped_around(error, reader)
                continue
            if not found.schema.equals(plain.schema):
                raise CaseFailed(
                    self._told(f"{reader.__name__} reads {uri} as\n{found.schema}\nexpected\n{plain.schema}")
                )
            rows = found.to_pylist()
            got = as_multiset(rows, plain.schema.names)
            if got != wanted:
                more = [row for row in got if row not in wanted][:5]
                less = [row for row in wanted if row not in got][:5]
                raise CaseFailed(
                    self._told(
                        f"{reader.__name__} reads {len(got)} rows for {len(wanted)} in {uri}\n"
                        f"found    {more}\nexpected {less}"
                    )
                )
            texts.append([repr(row) for row in rows])
        if len(texts) == 2 and texts[0] != texts[1]:
            raise CaseFailed(self._told(f"the readers disagree about the order of rows in {uri}"))

    def _told(self, what: str) -> str:
        kind = f"version {self.version}, stable ids {self.stable}, default scan options {self.hidden}"
        return "\n".join([f"seed {self.seed} ({kind}):", *(f"  {line}" for line in self.log), what])


def run(cases: int, first_seed: int, report: Callable[[str], object]) -> tuple[int, Counter[str]]:
    """Runs cases and reports those that fail.

    Returns:
        How many failed, and how often each fault of the peer was met.
    """
    failed, faults = 0, Counter[str]()
    base = Path("/dev/shm") if Path("/dev/shm").is_dir() else None
    for seed in range(first_seed, first_seed + cases):
        folder = Path(tempfile.mkdtemp(dir=base))
        case = Case(seed, folder)
        try:
            case.run()
        except CaseFailed as error:
            failed += 1
            report(str(error))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        faults += case.faults
    return failed, faults


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--stop", action="store_true", help="stop at the first case that fails")
    options = parser.parse_args()

    def report(text: str) -> None:
        print(text, "\n", flush=True)
        if options.stop:
            sys.exit(1)

    failed, faults = run(options.cases, options.first_seed, report)
    print(f"{options.cases} cases, {failed} failed; faults of the peer met: {dict(faults)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
