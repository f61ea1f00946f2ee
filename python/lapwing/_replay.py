"""The rule over a log of losses from any training run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from lapwing import _lapwing
from lapwing._arrays import as_losses, as_sources
from lapwing._lapwing import Rule, Table
from lapwing.numpy import Reading, Ties, Weighting

__all__ = ["Replay", "replay"]


class Replay:
    """What the rule would have done.

    Attributes
    ----------
    steps : Table
        A row per step and source: ``step, source, loss, unreliability, weight``; the loss is the mean of that source's
        finite losses in the step.
    sources : Table
        A row per source at the end: verdict, unreliability, weight, losses and counts.
    parameters : dict
        Those of the rule.

    Tables go to ``polars.DataFrame(...)``, ``pyarrow.table(...)`` and everything else that reads Arrow, or by
    ``.to_pandas()``, ``.to_polars()`` and, column by column, ``replay.steps["weight"]``.
    """

    def __init__(self, steps: Table, sources: Table, parameters: dict[str, Any]) -> None:
        self.steps = steps
        self.sources = sources
        self.parameters = parameters

    def __repr__(self) -> str:
        return f"<lapwing.Replay: {len(self.steps)} rows in steps, {len(self.sources)} sources>"

    def report(self, path: str | os.PathLike[str] | None = None, *, title: str = "Replay") -> str:
        """The HTML report; see `lapwing.report`."""
        from lapwing._report import report

        return report(self, path, title=title)


def replay(
    log: Any,
    *,
    step: str = "step",
    source: str = "source",
    loss: str = "loss",
    history_length: int = 25,
    leniency: float = 0.8,
    depression_strength: float = 1.0,
    warmup: int = 0,
    ties: Ties = "paper",
    weighting: Weighting = "tanh-squared",
    reading: Reading = "mean",
) -> Replay:
    """Runs the rule over a log of losses, without training anything.

    Parameters
    ----------
    log : table, dictionary or path
        One row per sample, or per source and step. A data frame of pandas or polars, an Arrow table or anything else
        with the Arrow PyCapsule interface; a dictionary of columns; or the path of a CSV, TSV (``.gz``, ``.zst``) or
        Parquet file. Consecutive rows of one step are one batch; steps never fall.
    step, source, loss : str
        The names of the columns. Steps are whole numbers, sources texts or numbers; losses that are missing, NaN or
        infinite are counted and left out of the means.
    history_length, leniency, depression_strength, warmup, ties, weighting, reading
        As for `lapwing.Lap`.

    Examples
    --------
    >>> import lapwing
    >>> log = {"step": [0, 0, 1, 1], "source": ["a", "b", "a", "b"], "loss": [0.1, 0.9, 0.2, 0.8]}
    >>> result = lapwing.replay(log, history_length=1)
    >>> result.steps["unreliability"].tolist()
    [0, 1, 0, 2]
    """
    parameters: dict[str, Any] = {
        "history_length": history_length,
        "leniency": leniency,
        "depression_strength": depression_strength,
        "warmup": warmup,
        "ties": ties,
        "weighting": weighting,
        "reading": reading,
    }
    rule = Rule(discrete_amount=0.005, **parameters)
    if isinstance(log, (str, os.PathLike)):
        steps, sources = _lapwing.replay_file(rule, os.fspath(log), step, source, loss)
    elif (stream := _stream(log)) is not None:
        steps, sources = _lapwing.replay_stream(rule, stream, step, source, loss)
    else:
        columns = [_column(log, name) for name in (step, source, loss)]
        whole = np.asarray(columns[0])
        if whole.dtype.kind not in "iu":
            exact = whole.astype(np.float64)
            whole = np.where(np.isfinite(exact), exact, 0.5)
            if not np.array_equal(whole, np.trunc(whole)):
                raise ValueError(f"column {step!r} must hold whole numbers")
        steps, sources = _lapwing.replay_arrays(
            rule, whole.astype(np.int64), as_sources(columns[1]), as_losses(columns[2])
        )
    return Replay(steps, sources, parameters)


def _stream(log: Any) -> Any:
    """The table as an Arrow stream, if it can be had."""
    try:
        return log.__arrow_c_stream__()
    except (AttributeError, ImportError):  # pandas needs pyarrow for it
        return None


def _column(log: Any, name: str) -> Any:
    if not isinstance(log, Mapping) and not hasattr(log, "columns"):
        raise TypeError(f"a log is a table, a dictionary of columns or a path, not {type(log).__name__}")
    try:
        return log[name]
    except KeyError:
        names = ", ".join(map(str, getattr(log, "columns", log)))
        raise KeyError(f"no column {name!r}; the table has {names}") from None
