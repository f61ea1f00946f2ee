"""The HTML report of what the rule found."""

from __future__ import annotations

import json
import math
import os
from typing import Any

import numpy as np

from lapwing._lapwing import Rule, Table, __version__, render_report

__all__ = ["report", "tables"]

_MOST_LINES = 60
_MOST_POINTS = 400
_MOST_DOUBTFUL = 100


def tables(result: Any) -> tuple[Table, Table | None, dict[str, Any]]:
    """Sources, steps if they were recorded, and facts, of whatever the rule was in."""
    if hasattr(result, "sources_"):  # an estimator
        facts = {"epochs": result.n_iter_, "rows": result.n_rows_, "seed": result.seed_, **result.rule_}
        if result.rows_ is not None:
            facts["judged_rows"] = len(result.rows_)
        return result.sources_, result.steps_, facts
    if hasattr(result, "parameters") and isinstance(getattr(result, "sources", None), Table):  # a replay
        return result.sources, result.steps, result.parameters
    if isinstance(getattr(result, "_rule", None), Rule):  # Lap, LossAdaptedPlasticity
        settings = getattr(result, "_settings", None) or result._parameters
        return result.sources(), None, settings
    raise TypeError(
        f"{type(result).__name__} is neither a Replay, a Lap, a LossAdaptedPlasticity nor a fitted estimator"
    )


def report(result: Any, path: str | os.PathLike[str] | None = None, *, title: str = "lapwing") -> str:
    """The HTML report: a verdict per source, and weight and loss step by step. One page that opens offline.

    Parameters
    ----------
    result : Replay, fitted LapClassifier or LapRegressor, Lap or LossAdaptedPlasticity
        The last two have no record of single steps; the page then has the table of sources only.
    path : optional
        Where to write the page.
    title : str
        The heading.

    Returns
    -------
    str
        The page.
    """
    sources, steps, facts = tables(result)
    table = sources.to_dict()
    judged: list[dict[str, Any]] | None = getattr(result, "_judged", None)
    rows: list[dict[str, Any]] = (
        [_row({name: values[at] for name, values in table.items()}) for at in range(len(sources))]
        if judged is None
        else judged
    )
    order = sorted(range(len(rows)), key=lambda at: (rows[at]["weight"], rows[at]["source"]))
    shown = [rows[at]["source"] for at in order[:_MOST_LINES]]
    found: dict[str, list[dict[str, Any]]] = {}
    for finding in getattr(result, "findings_", []):
        found.setdefault(finding["source"], []).append(finding)
    rows = [{**row, "findings": found.get(row["source"], [])} for row in rows]
    page = render_report(
        json.dumps(
            {
                "summary": _summary(title, sources, steps, facts),
                "warnings": _warnings(rows, facts),
                "sources": rows,
                "rows": _doubtful(getattr(result, "rows_", None)),
                "evidence": [{"source": row["source"]} for row in rows if row["findings"]],
                "trajectories": [] if steps is None else _trajectories(steps, shown),
                "epochs": _epochs(getattr(result, "epochs_", None)),
                "configuration": [{"key": name, "value": str(value)} for name, value in facts.items()],
            }
        ).encode()
    )
    if path is not None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(page)
    return page


def _summary(title: str, sources: Table, steps: Table | None, facts: dict[str, Any]) -> dict[str, Any]:
    summary = {
        "title": title,
        "source_column": "source",
        "method": facts.get("method", "lap"),
        "folds": facts.get("folds", 0),
        "judged_rows": facts.get("judged_rows", 0),
        "rows": int(facts.get("rows", sources["rows"].sum())),
        "steps": 0 if steps is None or not len(steps) else len(np.unique(steps["step"])),
        "epochs": facts.get("epochs", 0),
        "version": __version__,
        "seed": facts.get("seed"),
        "task": facts.get("task", "classification"),
        "history_length": facts["history_length"],
        "leniency": facts["leniency"],
        "depression_strength": facts["depression_strength"],
    }
    # JSON has no infinity, which the leniency may be.
    return {key: value for key, value in summary.items() if not isinstance(value, float) or math.isfinite(value)}


def _warnings(rows: list[dict[str, Any]], facts: dict[str, Any]) -> list[dict[str, str]]:
    if len(rows) == 1:
        text = "All rows come from one source. Reliability is judged by comparing sources, so nothing could be judged."
    elif rows and all(row["judged"] == 0 for row in rows):
        history = facts["history_length"]
        text = f"Nobody was judged: that takes two sources with {history} batches each. A shorter history may help."
    else:
        return []
    return [{"kind": "other", "text": text}]


def _row(source: dict[str, Any]) -> dict[str, Any]:
    departure = source["first_departure_step"]
    return {**source, "first_departure_step": None if departure is None else int(departure)}


def _doubtful(rows: Table | None) -> list[dict[str, Any]]:
    """Labels that are more likely wrong than right, worst first."""
    if rows is None:
        return []
    table = rows.to_dict()
    likely = [at for at, wrong in enumerate(table["wrong"]) if wrong is not None and wrong >= 0.5]
    return [{name: values[at] for name, values in table.items()} for at in likely[:_MOST_DOUBTFUL]]


def _epochs(epochs: Table | None) -> list[dict[str, Any]]:
    if epochs is None:
        return []
    table = epochs.to_dict()
    return [
        {"epoch": epoch, "split": split, "metric": "loss", "value": value}
        for split, losses in (("train", table["train_loss"]), ("validation", table["valid_loss"]))
        for epoch, value in zip(table["epoch"], losses)
        if value is not None
    ]


def _trajectories(steps: Table, shown: list[str]) -> list[dict[str, Any]]:
    names = np.array(steps["source"])
    lines = []
    for source in shown:
        own = names == source
        step, loss, weight = steps["step"][own], steps["loss"][own], steps["weight"][own]
        size = max(1, -(-len(step) // _MOST_POINTS))
        points = []
        for start in range(0, len(step), size):
            known = loss[start : start + size]
            known = known[np.isfinite(known)]
            last = min(start + size, len(step)) - 1
            points.append(
                {
                    "step": max(0, int(step[last])),
                    "loss": float(known.mean()) if len(known) else None,
                    "weight": float(weight[last]),
                }
            )
        lines.append({"source": source, "points": points})
    return lines
