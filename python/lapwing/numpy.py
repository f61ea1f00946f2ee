"""Loss Adapted Plasticity for NumPy, JAX and every framework whose arrays NumPy can read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from lapwing._arrays import as_losses, as_sources, pair
from lapwing._lapwing import Rule

if TYPE_CHECKING:
    from lapwing._lapwing import Table

__all__ = ["Lap", "weigh"]

Ties = Literal["paper", "package"]
Weighting = Literal["tanh-squared", "exponential", "cut"]
Reading = Literal["mean", "evidence"]


class Lap:
    """The weighting rule of LAP: per-sample losses and sources in, weights out.

    Parameters
    ----------
    history_length : int, at least 1, default 25
        How many batch-mean losses of a source are remembered. A source is judged, and counts when others are judged,
        once it has that many.
    leniency : float, at least 0, default 0.8
        How many standard deviations above the others' mean loss a source may lie. Infinity accuses nobody.
    depression_strength : float, at least 0, default 1.0
        How fast weight falls as unreliability C rises: the weight is 1 - tanh(0.005 * depression_strength * C)**2,
        which reaches one half at C = 176 / depression_strength.
    warmup : int, at least 0, default 0
        How many steps pass before the first judgement.
    ties : {"paper", "package"}, default "paper"
        What happens to a source exactly on the threshold: "paper" lowers its unreliability; "package" does as the
        authors' package, which raises it, and leaves it alone where the others spread by at most 1e-8.
    weighting : {"tanh-squared", "exponential", "cut"}, default "tanh-squared"
        The function from unreliability to weight: the paper's; exp(-0.005 * depression_strength * C); or 1 until the
        paper's reaches one half, then 0.
    reading : {"mean", "evidence"}, default "mean"
        What a history is read as: the mean of its losses; or minus the logarithm of the mean of exp(-loss), an estimate
        of the model evidence, to which a spike is hardly anything.

    Sources are texts or numbers; 5 and "5" are the same source.

    Examples
    --------
    >>> import lapwing
    >>> lap = lapwing.Lap(history_length=5)
    >>> for step in range(400):
    ...     weights = lap.weigh([0.21 + step % 7 / 50, 0.9, 0.18], ["ward 1", "ward 2", "ward 3"])
    >>> weights.round(2).tolist()
    [1.0, 0.07, 1.0]
    """

    def __init__(
        self,
        history_length: int = 25,
        leniency: float = 0.8,
        depression_strength: float = 1.0,
        warmup: int = 0,
        *,
        ties: Ties = "paper",
        weighting: Weighting = "tanh-squared",
        reading: Reading = "mean",
    ) -> None:
        self._parameters: dict[str, Any] = {
            "history_length": history_length,
            "leniency": leniency,
            "depression_strength": depression_strength,
            "warmup": warmup,
            "ties": ties,
            "weighting": weighting,
            "reading": reading,
        }
        self._rule = Rule(discrete_amount=0.005, **self._parameters)

    def __repr__(self) -> str:
        parameters = ", ".join(f"{name}={value!r}" for name, value in self._parameters.items())
        return f"Lap({parameters})"

    def weigh(self, losses: npt.ArrayLike, sources: Any) -> npt.NDArray[Any]:
        """One step: updates the sources of a batch and returns the weight of each sample, in [0, 1].

        Train on the mean of weight * loss, with no gradient through the weights and not divided by their sum. A sample
        whose loss is not finite weighs 0; leave it out of the sum, as 0 * nan is nan.

        Parameters
        ----------
        losses : array of shape (B,) or (B, ...)
            The loss of each sample. Further dimensions are averaged, unless there is a source for every entry.
        sources : array or list, one entry per sample
            Where each sample came from: integers or texts.

        Returns
        -------
        array of shape (B,)
            In the precision of the losses, float32 or float64.
        """
        names = as_sources(sources)
        weights, _ = self._rule.weigh(pair(as_losses(losses), names), names)
        return weights

    @property
    def step(self) -> int:
        """How many steps have been made."""
        return self._rule.step

    def weight(self, source: object) -> float:
        """What samples of this source weigh now; 1 for a source never seen."""
        return self._rule.weight(source)

    def unreliability(self, source: object) -> int:
        """C of this source now; 0 for a source never seen."""
        return self._rule.unreliability(source)

    def sources(self) -> Table:
        """Where every source stands, a row for each in order of first appearance: verdict, unreliability, weight, losses
        and counts. ``.to_pandas()``, ``.to_polars()``, or a column by its name."""
        return self._rule.sources()

    def state(self) -> bytes:
        """All that is known, as JSON; `load` goes on from it to the last bit."""
        return self._rule.state()

    def load(self, state: bytes, *, prior: bool = False) -> None:
        """Goes on from what `state` returned, under the parameters of this object, which may differ but for
        ``history_length``. With ``prior=True`` only the unreliability of each source is taken, to start another run
        with what the last one found out."""
        self._rule.load(state, prior=prior)


def weigh(lap: Lap, losses: npt.ArrayLike, sources: Any) -> npt.NDArray[Any]:
    """The weighted loss of each sample: ``lap.weigh`` times the losses, with 0 where a loss is not finite.

    For a framework that differentiates, multiply by ``lap.weigh(...)`` yourself: NumPy knows no gradients.

    Examples
    --------
    >>> import lapwing.numpy as lnp
    >>> lnp.weigh(lnp.Lap(), [0.5, float("nan")], [1, 2]).tolist()
    [0.5, 0.0]
    """
    values = as_losses(losses)
    names = as_sources(sources)
    samples = pair(values, names)
    weights, finite = lap._rule.weigh(samples, names)
    shape = values.shape if weights.size == values.size else (-1,) + (1,) * (values.ndim - 1)
    weighted = values if finite else np.where(weights.reshape(shape) > 0, values, 0)
    return (weighted * weights.reshape(shape)).astype(values.dtype, copy=False)
