"""Loss Adapted Plasticity for LightGBM: rows weigh what their source does, round by round."""

from __future__ import annotations

from typing import Any

import lightgbm
import numpy as np

from lapwing._rounds import Judged, Loss, Rounds, row_loss

__all__ = ["LapCallback"]

_OBJECTIVE = ("objective", "objective_type", "app", "application", "loss")


class LapCallback(Judged):
    """A callback for ``lightgbm.train``: a round is a step of the rule, and the weights of rows follow.

    Everything else stays yours: parameters, objective, validation, early stopping. The booster is an ordinary one.

    Parameters
    ----------
    train_set : lightgbm.Dataset
        What will be trained on. Its weights, if it has any, are multiplied by those of the sources, and stay so.
    sources : array or list, one entry per row
        Where each row came from: integers or texts; 5 and "5" are the same source.
    loss : callable, optional
        From predictions, as the booster gives them, and labels to the loss of each row. Known for the objectives of
        regression and classification; needed for others.
    history_length : int, default 20
        How many rounds of a source are remembered. A source is judged once it has that many.
    leniency : float, default 1.0
        How many standard deviations above the others' mean loss a source may lie.
    depression_strength : float, default 6.0
        How fast weight falls: 6 halves it after 30 rounds above the others.
    rows : int, default 32
        How many rows of each source a round is judged by, drawn anew each time: all rows would leave no chance in the
        means, and condemn clean sources that are a little harder than others.
    seed : int, default 0
        Of the draw of these rows.

    Examples
    --------
    >>> import lightgbm, numpy
    >>> from lapwing.lightgbm import LapCallback
    >>> random = numpy.random.default_rng(0)
    >>> X, ward = random.normal(size=(2000, 3)), random.integers(0, 5, 2000)
    >>> y = numpy.where(ward == 4, random.normal(size=2000), X[:, 0])
    >>> train_set = lightgbm.Dataset(X, y)
    >>> lap = LapCallback(train_set, sources=ward)                                  # the first new line
    >>> params = {"objective": "regression", "verbose": -1, "num_threads": 1}
    >>> model = lightgbm.train(params, train_set, 100, callbacks=[lap])             # the second
    >>> sorted(zip(lap.sources()["source"], lap.sources()["weight"].round(1).tolist()))
    [('0', 1.0), ('1', 1.0), ('2', 1.0), ('3', 1.0), ('4', 0.0)]
    """

    before_iteration = True
    order = 0

    def __init__(
        self,
        train_set: lightgbm.Dataset,
        sources: Any,
        *,
        loss: Loss | None = None,
        history_length: int = 20,
        leniency: float = 1.0,
        depression_strength: float = 6.0,
        rows: int = 32,
        seed: int = 0,
    ) -> None:
        self._train_set = train_set
        self._loss = loss
        self._rounds = Rounds(
            sources,
            train_set.weight,
            history_length=history_length,
            leniency=leniency,
            depression_strength=depression_strength,
            rows=rows,
            seed=seed,
        )
        # Before training starts: an objective that finds no weights then looks for none later.
        train_set.set_weight(self._rounds.weights())

    def __call__(self, env: Any) -> None:
        """Called by LightGBM before every round."""
        if not isinstance(env.model, lightgbm.Booster) or env.model.train_set is not self._train_set:
            raise ValueError("LapCallback was made for another train_set; lightgbm.cv, which makes its own, cannot be used")
        if env.iteration == env.begin_iteration:
            objective = next((env.params[name] for name in _OBJECTIVE if name in env.params), "regression")
            self._loss = row_loss(objective, self._loss)
            return
        seen: list[Any] = []

        def look(predictions: Any, _: Any) -> tuple[str, float, bool]:
            seen.append(predictions)
            return "lapwing", 0.0, False

        env.model.eval_train(feval=look)
        labels = np.asarray(self._train_set.get_label())
        assert self._loss is not None
        self._train_set.set_weight(self._rounds.step(self._loss(seen[0], labels)))
