"""Loss Adapted Plasticity for XGBoost: rows weigh what their source does, round by round."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import xgboost

from lapwing._rounds import Judged, Loss, Rounds, row_loss

__all__ = ["LapCallback"]


class LapCallback(Judged, xgboost.callback.TrainingCallback):
    """A callback for ``xgboost.train``: a round is a step of the rule, and the weights of rows follow.

    Everything else stays yours: parameters, objective, validation, early stopping. The booster is an ordinary one.

    Parameters
    ----------
    dtrain : xgboost.DMatrix
        What will be trained on. Its weights, if it has any, are multiplied by those of the sources, and stay so.
    sources : array or list, one entry per row
        Where each row came from: integers or texts; 5 and "5" are the same source.
    loss : callable, optional
        From predictions, as the booster gives them, and labels to the loss of each row. Known for the objectives of
        regression and classification; needed for others.
    history_length, leniency, depression_strength, rows, seed
        Those of `lapwing.lightgbm.LapCallback`.

    Examples
    --------
    >>> import numpy, xgboost
    >>> from lapwing.xgboost import LapCallback
    >>> random = numpy.random.default_rng(0)
    >>> X, ward = random.normal(size=(2000, 3)), random.integers(0, 5, 2000)
    >>> y = numpy.where(ward == 4, random.normal(size=2000), X[:, 0])
    >>> dtrain = xgboost.DMatrix(X, y)
    >>> lap = LapCallback(dtrain, sources=ward)                                     # the first new line
    >>> model = xgboost.train({"eta": 0.1, "nthread": 1}, dtrain, 100, callbacks=[lap])   # the second
    >>> sorted(zip(lap.sources()["source"], lap.sources()["weight"].round(1).tolist()))
    [('0', 1.0), ('1', 1.0), ('2', 1.0), ('3', 1.0), ('4', 0.0)]
    """

    def __init__(
        self,
        dtrain: xgboost.DMatrix,
        sources: Any,
        *,
        loss: Loss | None = None,
        history_length: int = 20,
        leniency: float = 1.0,
        depression_strength: float = 6.0,
        rows: int = 32,
        seed: int = 0,
    ) -> None:
        super().__init__()
        own = dtrain.get_weight()
        self._dtrain = dtrain
        self._given = loss
        self._loss: Loss | None = loss
        self._margins = False
        self._rounds = Rounds(
            sources,
            own if len(own) else None,
            history_length=history_length,
            leniency=leniency,
            depression_strength=depression_strength,
            rows=rows,
            seed=seed,
        )

    def before_training(self, model: Any) -> Any:
        """Called by XGBoost once."""
        if not isinstance(model, xgboost.Booster):
            raise ValueError("LapCallback is for xgboost.train; xgboost.cv makes matrices of its own")
        objective = json.loads(model.save_config())["learner"]["objective"]["name"]
        self._loss = row_loss(objective, self._given)
        # It predicts classes without their probabilities.
        self._margins = objective == "multi:softmax" and self._given is None
        return model

    def before_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """Called by XGBoost before every round; never ends training."""
        if model.num_boosted_rounds():
            predictions = model.predict(self._dtrain, output_margin=self._margins)
            if self._margins:
                predictions = np.exp(predictions - predictions.max(axis=1, keepdims=True))
                predictions /= predictions.sum(axis=1, keepdims=True)
            assert self._loss is not None
            self._dtrain.set_weight(self._rounds.step(self._loss(predictions, self._dtrain.get_label())))
        return False
