"""Tables like those that people keep: lines of orders, events of a web site, trips of taxis. Made from a seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benches.data import strings_of, vocabulary, with_nulls

WORDS = [
    "carefully",
    "final",
    "deposits",
    "sleep",
    "quickly",
    "furiously",
    "ironic",
    "packages",
    "among",
    "the",
    "express",
    "requests",
    "haggle",
    "blithely",
    "regular",
    "accounts",
    "pending",
    "theodolites",
    "even",
    "instructions",
    "bold",
    "pinto",
    "beans",
    "slyly",
    "silent",
    "foxes",
    "according",
    "to",
    "unusual",
    "dependencies",
    "about",
    "special",
    "ideas",
    "above",
    "across",
]


def _pick(rng: np.random.Generator, names: list[str], rows: int, shares: list[float] | None = None) -> pa.Array:
    return pa.array(names).take(pa.array(rng.choice(len(names), rows, p=shares)))


def _frequent(rng: np.random.Generator, rows: int, below: int, exponent: float = 1.3) -> Any:
    """Numbers below a bound, small ones much more often."""
    return np.minimum(rng.zipf(exponent, rows) - 1, below - 1)


def _texts(rng: np.random.Generator, words: pa.Array, rows: int, longest: int) -> pa.Array:
    counts = rng.integers(3, longest, rows)
    picks = _frequent(rng, int(counts.sum()), len(words), 1.2)
    return strings_of(words, counts, pa.array(picks))


def lineitem(rng: np.random.Generator, rows: int) -> pa.Table:
    """Keys, amounts of money as doubles, flags, dates and comments, as in TPC-H."""
    orders = np.repeat(np.arange(1, rows + 1), rng.integers(1, 8, rows))[:rows]
    first = np.concatenate([[True], orders[1:] != orders[:-1]])
    start = np.maximum.accumulate(np.where(first, np.arange(rows), 0))
    quantity, part = rng.integers(1, 51, rows), rng.integers(1, 200_001, rows)
    price = np.round(quantity * (90_000 + part // 10 % 20_001 + 100 * (part % 1000)) / 100.0, 2)
    ordered = 8035 + rng.integers(0, 2405, rows)[np.cumsum(first) - 1]
    shipped = ordered + rng.integers(1, 122, rows)

    def date(days: Any) -> pa.Array:
        return pa.array(days.astype(np.int32), pa.date32())

    return pa.table(
        {
            "orderkey": orders // 8 * 32 + orders % 8,
            "partkey": part,
            "suppkey": rng.integers(1, 10_001, rows),
            "linenumber": (np.arange(rows) - start + 1).astype(np.int32),
            "quantity": quantity.astype(np.float64),
            "extendedprice": price,
            "discount": rng.integers(0, 11, rows) / 100.0,
            "tax": rng.integers(0, 9, rows) / 100.0,
            "returnflag": _pick(rng, ["A", "N", "R"], rows, [0.25, 0.5, 0.25]),
            "linestatus": _pick(rng, ["F", "O"], rows),
            "shipdate": date(shipped),
            "commitdate": date(ordered + rng.integers(30, 91, rows)),
            "receiptdate": date(shipped + rng.integers(1, 31, rows)),
            "shipinstruct": _pick(rng, ["DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"], rows),
            "shipmode": _pick(rng, ["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"], rows),
            "comment": strings_of(
                pa.array(WORDS),
                counts := rng.integers(3, 8, rows),
                pa.array(rng.integers(0, len(WORDS), int(counts.sum()))),
            ),
        }
    )


def events(rng: np.random.Generator, rows: int) -> pa.Table:
    """Ids in hexadecimal, times, users, URLs, agents and messages."""
    words = vocabulary(rng, 5000)
    hosts = words.take(pa.array(rng.integers(0, 50, rows)))
    pages = words.take(pa.array(_frequent(rng, rows, 2000)))
    numbers = pa.array(rng.integers(0, 1_000_000, rows)).cast(pa.string())
    origins = words.take(pa.array(rng.integers(0, 300, rows)))
    url = pc.binary_join_element_wise(
        "https://www.", hosts, ".example.com/", pages, "/item?id=", numbers, "&ref=", origins, ""
    )
    digits = rng.bytes(rows * 8).hex()
    systems = ("Linux x86_64", "Windows NT 10.0", "Macintosh")
    agents = pa.array(
        f"Mozilla/5.0 ({system}) AppleWebKit/537.{kit} Chrome/{browser}.0.{kit * 7}.{browser * 3}"
        for system in systems
        for kit in range(20)
        for browser in range(90, 120)
    )
    users = rng.integers(0, 2**63 - 1, 60_000)[_frequent(rng, rows, 60_000, 1.1)]
    moments = 1_700_000_000_000_000 + np.cumsum(rng.exponential(300_000, rows)).astype(np.int64)
    kinds = ["view", "click", "scroll", "buy", "leave"]
    return pa.table(
        {
            "event_id": pa.array([digits[at : at + 16] for at in range(0, 16 * rows, 16)]),
            "time": pa.array(moments, pa.timestamp("us")),
            "user_id": users,
            "kind": _pick(rng, kinds, rows, [0.5, 0.25, 0.15, 0.02, 0.08]),
            "url": url,
            "referrer": with_nulls(rng, pc.binary_join_element_wise("https://", hosts, ".example.org/", ""), 0.4),
            "agent": agents.take(pa.array(_frequent(rng, rows, len(agents)))),
            "duration_ms": rng.lognormal(3, 1.2, rows).astype(np.int32),
            "score": rng.random(rows),
            "status": rng.choice([200, 301, 404, 500], rows, p=[0.9, 0.05, 0.04, 0.01]).astype(np.int16),
            "message": with_nulls(rng, _texts(rng, words, rows, 14), 0.3),
        }
    )


def taxi(rng: np.random.Generator, rows: int) -> pa.Table:
    """Times, places, and many amounts of money, some of them missing."""
    second = 1_000_000
    begin = (1_672_531_200 + np.sort(rng.integers(0, 31 * 86_400, rows)) + rng.integers(-600, 600, rows)) * second
    distance = np.round(rng.lognormal(0.6, 0.8, rows), 2)
    duration = (distance * 240 + rng.exponential(300, rows)).astype(np.int64)
    fare = np.round(np.round((3 + distance * 2.5 + duration / 120) / 0.7) * 0.7, 2)
    tip = np.where(rng.random(rows) < 0.3, 0, np.round(fare * rng.choice([0.15, 0.2, 0.25], rows), 2))
    tolls = np.where(rng.random(rows) < 0.92, 0, 6.55)
    extra, congestion = rng.choice([0, 0.5, 1, 2.5], rows), rng.choice([0, 2.5], rows, p=[0.1, 0.9])
    missing, zones = rng.random(rows) < 0.03, rng.permutation(266)
    passengers = np.where(rng.random(rows) < 0.7, 1, rng.integers(0, 7, rows)).astype(np.float64)
    codes = rng.choice([1.0, 2.0, 5.0, 99.0], rows, p=[0.94, 0.04, 0.01, 0.01])
    return pa.table(
        {
            "vendor": rng.integers(1, 3, rows),
            "pickup": pa.array(begin, pa.timestamp("us")),
            "dropoff": pa.array(begin + duration * second, pa.timestamp("us")),
            "passengers": pa.array(passengers, mask=missing),
            "distance": distance,
            "ratecode": pa.array(codes, mask=missing),
            "stored": pa.array(["N", "Y"]).take(pa.array((rng.random(rows) < 0.01).astype(int), mask=missing)),
            "from": zones[_frequent(rng, rows, 266, 1.25)],
            "to": zones[_frequent(rng, rows, 266, 1.25)],
            "payment": rng.choice([1, 2, 3, 4], rows, p=[0.75, 0.2, 0.03, 0.02]),
            "fare": fare,
            "extra": extra,
            "tax": rng.choice([0.5, 0.0, -0.5], rows, p=[0.98, 0.01, 0.01]),
            "tip": tip,
            "tolls": tolls,
            "surcharge": np.full(rows, 0.3),
            "total": np.round(fare + extra + 0.5 + tip + tolls + 0.3 + congestion, 2),
            "congestion": pa.array(congestion, mask=missing),
            "airport": pa.array(rng.choice([0.0, 1.25], rows, p=[0.9, 0.1]), mask=missing),
        }
    )


TABLES: dict[str, Callable[[np.random.Generator, int], pa.Table]] = {
    "lineitem": lineitem,
    "events": events,
    "taxi": taxi,
}
