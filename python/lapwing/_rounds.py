"""The rule on rounds of boosting: what the adapters for boosted trees share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lapwing._arrays import as_sources
from lapwing.numpy import Lap

if TYPE_CHECKING:
    from lapwing._lapwing import Table

__all__ = ["Loss", "Rounds", "row_loss"]

_Array = npt.NDArray[Any]
Loss = Callable[[_Array, _Array], _Array]
"""The loss of each row, from what the model predicts for it and the label it was given."""

_ALMOST_ONE = float(np.nextafter(np.float32(1), np.float32(0)))
"""Weights that are all 1 are none to LightGBM, which then does not look at those that come later."""


class Rounds:
    """A round of boosting is a step of the rule, and rows weigh what their sources do.

    After a round the losses of all rows are known, so the mean of a source has hardly any noise, and a clean source that is
    a little harder than the others stays above the threshold for ever; as trees learn by heart what weighs much, it even
    departs further. Batches, for which the rule was made, have that noise. So a round is judged by a batch: a few rows of
    each source, as many of a small one as of a large one, so that the means of all are equally uncertain.

    Parameters
    ----------
    sources : array or list, one entry per row
        Where each row came from: integers or texts.
    weights : array, optional
        What rows weigh besides.
    history_length, leniency, depression_strength
        Those of `lapwing.Lap`.
    rows : int, at least 1
        How many rows of each source a round is judged by, drawn with replacement.
    seed : int
        Of the draw of these rows.
    """

    def __init__(
        self,
        sources: Any,
        weights: npt.ArrayLike | None,
        *,
        history_length: int,
        leniency: float,
        depression_strength: float,
        rows: int,
        seed: int,
    ) -> None:
        if rows < 1:
            raise ValueError(f"rows is {rows}, but must be at least 1")
        self.lap = Lap(history_length=history_length, leniency=leniency, depression_strength=depression_strength)
        names = as_sources(sources)
        codes: dict[Any, int] = {}
        self._codes = np.array([codes.setdefault(name, len(codes)) for name in names], dtype=np.intp)
        self._names = list(codes)
        self._own = np.ones(len(names)) if weights is None else np.asarray(weights, dtype=float)
        self._counts = np.bincount(self._codes, minlength=len(codes))
        # Rows in the order of their sources, and where each source starts in it.
        self._order = np.argsort(self._codes, kind="stable")
        self._starts = np.cumsum(self._counts) - self._counts
        self._rows = rows
        self._random = np.random.default_rng(seed)

    def weights(self) -> npt.NDArray[np.float32]:
        """What each row weighs now."""
        of_source = np.array([self.lap.weight(name) for name in self._names])
        weights = (self._own * of_source[self._codes]).astype(np.float32)
        return np.minimum(weights, np.float32(_ALMOST_ONE)) if (weights == 1).all() else weights

    def step(self, losses: _Array) -> npt.NDArray[np.float32]:
        """Judges by the losses of a round; returns what each row weighs in the next."""
        if losses.shape != self._codes.shape:
            raise ValueError(f"there are {len(self._codes)} sources, but losses of shape {losses.shape}")
        drawn = self._random.random((len(self._names), self._rows)) * self._counts[:, None]
        batch = self._order[(self._starts[:, None] + drawn.astype(np.intp)).reshape(-1)]
        self.lap.weigh(losses[batch], [name for name in self._names for _ in range(self._rows)])
        return self.weights()


class Judged:
    """Something that has `Rounds` inside."""

    _rounds: Rounds

    @property
    def lap(self) -> Lap:
        """The rule, with its state: ``lapwing.report(callback.lap, "report.html")``."""
        return self._rounds.lap

    def sources(self) -> Table:
        """Where every source stands, a row for each in order of first appearance: verdict, unreliability, weight, losses
        and counts. ``.to_pandas()``, ``.to_polars()``, or a column by its name."""
        return self._rounds.lap.sources()


def _squared(predictions: _Array, labels: _Array) -> _Array:
    return (predictions.reshape(len(labels)) - labels) ** 2


def _absolute(predictions: _Array, labels: _Array) -> _Array:
    return np.abs(predictions.reshape(len(labels)) - labels)


def _logistic(predictions: _Array, labels: _Array) -> _Array:
    # Labels may be probabilities.
    right = np.clip(predictions.reshape(len(labels)), 1e-15, 1 - 1e-15)
    return -(labels * np.log(right) + (1 - labels) * np.log(1 - right))


def _of_classes(predictions: _Array, labels: _Array) -> _Array:
    own = predictions.reshape(len(labels), -1)[np.arange(len(labels)), labels.astype(np.intp)]
    return -np.log(np.maximum(own, 1e-15))


_LOSSES = {
    _squared: "regression regression_l2 l2 mean_squared_error mse l2_root root_mean_squared_error rmse reg:squarederror",
    _absolute: "regression_l1 l1 mean_absolute_error mae huber fair quantile mape mean_absolute_percentage_error"
    " reg:absoluteerror reg:pseudohubererror",
    _logistic: "binary cross_entropy xentropy binary:logistic reg:logistic logloss crossentropy",
    _of_classes: "multiclass softmax multiclassova multiclass_ova ova ovr multi:softprob multi:softmax multiclassonevsall",
}


def row_loss(objective: Any, loss: Loss | None) -> Loss:
    """The loss that sources are judged by: as given, or that of a known objective."""
    if loss is not None:
        return loss
    if isinstance(objective, str):
        name = objective.split(":")[0] if objective[:1].isupper() else objective  # CatBoost's have parameters behind a colon
        for known, names in _LOSSES.items():
            if name.lower() in names.split():
                return known
    raise ValueError(
        f"what a row loses under the objective {objective!r} is not known here: "
        "give loss=, a function of predictions and labels that returns the loss of each row"
    )
