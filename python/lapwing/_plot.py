"""Pictures of what the rule found, with matplotlib."""

from __future__ import annotations

from typing import Any

import numpy as np

from lapwing._report import tables

__all__ = ["plot"]


def plot(result: Any, column: str = "weight", *, sources: int = 10, ax: Any = None) -> Any:
    """Draws weight, loss or unreliability of each source over the steps.

    Parameters
    ----------
    result : Replay, or fitted LapClassifier or LapRegressor
        What to draw.
    column : {"weight", "loss", "unreliability"}, default "weight"
        What of it.
    sources : int, at least 1, default 10
        How many sources get a colour and a name, those with the smallest weights first; the others are grey.
    ax : matplotlib axes, optional
        Where to draw; a new figure if not given.

    Returns
    -------
    matplotlib axes
    """
    import matplotlib.pyplot as plt

    if column not in ("weight", "loss", "unreliability"):
        raise ValueError(f"column is {column!r}, but must be 'weight', 'loss' or 'unreliability'")
    table, steps, _ = tables(result)
    if steps is None:
        raise TypeError(f"{type(result).__name__} keeps no record of single steps: replay a log of its losses instead")
    ax = plt.figure().gca() if ax is None else ax
    names = np.array(steps["source"])
    order = [table["source"][at] for at in np.argsort(table["weight"], kind="stable")]
    for at, source in reversed(list(enumerate(order))):
        own = names == source
        named = at < sources
        style = {"label": source, "zorder": 2.5} if named else {"color": "0.8", "linewidth": 0.8}
        ax.plot(steps["step"][own], steps[column][own], **style)
    ax.set_xlabel("step")
    ax.set_ylabel(column)
    if column == "weight":
        ax.set_ylim(-0.02, 1.02)
    ax.legend(loc="best", fontsize="small", reverse=True)
    return ax
