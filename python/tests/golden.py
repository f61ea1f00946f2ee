"""The golden traces of the repository, read with the standard library."""

from __future__ import annotations

import csv
import gzip
from itertools import groupby
from pathlib import Path

DIRECTORY = Path(__file__).parents[2] / "tests" / "golden"


def read(name: str) -> list[dict[str, float]]:
    with gzip.open(DIRECTORY / f"{name}.csv.gz", "rt") as file:
        return [{key: float(value or "nan") for key, value in row.items()} for row in csv.DictReader(file)]


def batches(name: str) -> list[list[dict[str, float]]]:
    """The samples of a trace of the package, step by step."""
    return [list(rows) for _, rows in groupby(read(f"pkg_{name}_samples"), key=lambda row: row["step"])]


def states(name: str) -> list[list[float]]:
    """The package's unreliability of each source after each step."""
    return [[value for key, value in row.items() if key != "step"] for row in read(f"pkg_{name}_state")]
