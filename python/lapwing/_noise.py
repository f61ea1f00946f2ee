"""Noise rates for NumPy, JAX and every framework whose arrays NumPy can read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lapwing._arrays import as_array, as_losses, as_sources
from lapwing._lapwing import Noise

if TYPE_CHECKING:
    from lapwing._lapwing import Table

__all__ = ["NoiseRate"]


class NoiseRate:
    """A noise rate for each source, and a weight for each row: probabilities, labels and sources in, weights out.

    Each label is either the truth, which the network predicts with p(y|x), or noise, drawn from the label frequencies
    m(y) with a probability e that belongs to its source. A row weighs 1 - r, where

        r = e * m(y) / (e * m(y) + (1 - e) * p(y|x))

    is the probability that its label is noise, and e follows the mean of r over the rows of the source. A source whose
    rows are difficult keeps its weight, where a rule on losses, such as `Lap`, takes it away.

    Parameters
    ----------
    classes : int, at least 1
        How many classes there are; labels count from 0.
    warmup : int, at least 0, default 0
        How many steps every source keeps the prior. A tenth of all steps is a good choice, and 300 at least.
    prior : float from 0 to 1, default 0.1
        The noise rate of a source of which nothing is known.
    prior_strength : float above 0, default 10.0
        How many rows the prior counts for.
    decay : float from 0 to 1, default 0.98
        What is left of the evidence on a source one batch later.
    cap : float from 0 to below 1, default 0.99
        The highest noise rate.
    frequencies : array of shape (classes,), optional
        m(y), or how many rows each class has. Counted from batch to batch where it is not given.

    Sources are texts or numbers; 5 and "5" are the same source.

    Examples
    --------
    >>> import lapwing
    >>> noise = lapwing.NoiseRate(classes=2)
    >>> for step in range(100):
    ...     weights = noise.weigh([0.95, 0.6, 0.02], [step % 2] * 3, ["ward 1", "ward 2", "ward 3"])
    >>> weights.round(1).tolist()
    [1.0, 0.9, 0.0]
    >>> round(noise.rate("ward 3"), 1)
    0.8
    """

    def __init__(
        self,
        classes: int,
        warmup: int = 0,
        prior: float = 0.1,
        prior_strength: float = 10.0,
        *,
        decay: float = 0.98,
        cap: float = 0.99,
        frequencies: npt.ArrayLike | None = None,
    ) -> None:
        self._parameters: dict[str, Any] = {
            "classes": classes,
            "warmup": warmup,
            "prior": prior,
            "prior_strength": prior_strength,
            "decay": decay,
            "cap": cap,
        }
        given = None if frequencies is None else as_losses(frequencies).reshape(-1).astype(float).tolist()
        if given is not None and len(given) != classes:
            raise ValueError(f"there are {len(given)} frequencies for {classes} classes")
        self._rule = Noise(frequencies=given, **self._parameters)

    def __repr__(self) -> str:
        parameters = ", ".join(f"{name}={value!r}" for name, value in self._parameters.items())
        return f"NoiseRate({parameters})"

    def weigh(self, probabilities: npt.ArrayLike, labels: Any, sources: Any) -> npt.NDArray[np.float64]:
        """One step: returns the weight of each row, in [0, 1], by what was known before, and learns from the batch.

        Train on the mean of weight * loss, with no gradient through the weights and not divided by their sum. A row
        whose probability is not finite weighs 0; leave it out of the sum, as 0 * nan is nan.

        Parameters
        ----------
        probabilities : array of shape (B, classes) or (B,)
            What the network gives to every class, or to the label of the row only.
        labels : array of shape (B,), integers
            The label that each row was given.
        sources : array or list, one entry per row
            Where each row came from: integers or texts.
        """
        own = as_labels(labels)
        given = of_labels(as_losses(probabilities), own, self._parameters["classes"])
        return self._rule.weigh(given, own, as_sources(sources))

    @property
    def step(self) -> int:
        """How many steps have been made."""
        return self._rule.step

    def rate(self, source: object) -> float:
        """The share of the labels of this source that is noise; the prior for a source never seen."""
        return self._rule.rate(source)

    def frequencies(self) -> npt.NDArray[np.float64]:
        """m(y) of every class, as given or counted so far."""
        return np.array(self._rule.frequencies())

    def sources(self) -> Table:
        """Where every source stands, a row for each in order of first appearance: noise rate, weight and counts.
        ``.to_pandas()``, ``.to_polars()``, or a column by its name."""
        return self._rule.sources()

    def state(self) -> bytes:
        """All that is known, as JSON; `load` goes on from it to the last bit."""
        return self._rule.state()

    def load(self, state: bytes) -> None:
        """Goes on from what `state` returned, under the parameters of this object, which may differ but for
        ``classes``."""
        self._rule.load(state)


def as_labels(labels: Any) -> npt.NDArray[np.int64]:
    """One-dimensional int64."""
    array = as_array(labels)
    if array.dtype.kind not in "iu":
        raise TypeError(f"labels must be integers that count from 0, not {array.dtype}")
    return np.ascontiguousarray(array.reshape(-1), dtype=np.int64)


def of_labels(probabilities: npt.NDArray[Any], labels: npt.NDArray[np.int64], classes: int) -> npt.NDArray[Any]:
    """The probability of each row's own label."""
    if probabilities.ndim == 1:
        return probabilities
    if probabilities.ndim != 2 or probabilities.shape[1] != classes:
        shape = probabilities.shape
        raise ValueError(f"probabilities have shape {shape}, but must be one per row, or {classes} per row")
    if len(probabilities) != len(labels):
        raise ValueError(f"{len(probabilities)} rows of probabilities came with {len(labels)} labels")
    known = (labels >= 0) & (labels < classes)
    if not known.all():
        raise ValueError(f"label {labels[~known][0]} is none of the {classes} classes, which count from 0")
    return probabilities[np.arange(len(labels)), labels]
