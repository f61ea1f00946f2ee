"""Loss Adapted Plasticity for CatBoost: rows weigh what their source does, and follow every few rounds."""

from __future__ import annotations

from typing import Any

import catboost
import numpy as np

from lapwing._rounds import Judged, Loss, Rounds, row_loss

__all__ = ["LapFit"]


class LapFit(Judged):
    """Fits a CatBoost model in turns of a few rounds. The rule makes a step per round, and after each turn the weights of
    rows follow.

    CatBoost copies the weights when training starts, so each turn is a training of its own that goes on from the last
    (by the baseline of the pool), and the models are summed up. Parameters and objective stay yours; early stopping and
    snapshots do not work over turns. The learning rate must be given, as the automatic one depends on the number of
    rounds.

    Parameters
    ----------
    sources : array or list, one entry per row
        Where each row came from: integers or texts; 5 and "5" are the same source.
    turns : int, default 40
        How many turns the rounds are divided into. More follow sources more closely, and cost more.
    loss : callable, optional
        From predictions (probabilities for classes) and labels to the loss of each row. Known for the objectives of
        regression and classification; needed for others.
    history_length, leniency, depression_strength, rows, seed
        Those of `lapwing.lightgbm.LapCallback`.

    Examples
    --------
    >>> import catboost, numpy
    >>> from lapwing.catboost import LapFit
    >>> random = numpy.random.default_rng(0)
    >>> X, ward = random.normal(size=(2000, 3)), random.integers(0, 5, 2000)
    >>> y = numpy.where(ward == 4, random.normal(size=2000), X[:, 0])
    >>> model = catboost.CatBoostRegressor(
    ...     iterations=120, learning_rate=0.1, thread_count=1, verbose=False, allow_writing_files=False
    ... )
    >>> lap = LapFit(sources=ward)                                                  # the first new line
    >>> model = lap.fit(model, catboost.Pool(X, y))                                 # instead of model.fit(...)
    >>> sorted(zip(lap.sources()["source"], lap.sources()["weight"].round(1).tolist()))
    [('0', 1.0), ('1', 1.0), ('2', 1.0), ('3', 1.0), ('4', 0.0)]
    """

    def __init__(
        self,
        sources: Any,
        *,
        turns: int = 40,
        loss: Loss | None = None,
        history_length: int = 20,
        leniency: float = 1.0,
        depression_strength: float = 6.0,
        rows: int = 32,
        seed: int = 0,
    ) -> None:
        if turns < 1:
            raise ValueError(f"turns is {turns}, but must be at least 1")
        self._turns = turns
        self._loss = loss
        self._rounds = Rounds(
            sources,
            None,
            history_length=history_length,
            leniency=leniency,
            depression_strength=depression_strength,
            rows=rows,
            seed=seed,
        )

    def fit(self, model: catboost.CatBoost, pool: catboost.Pool) -> catboost.CatBoost:
        """Fits a model that has not been fitted; returns another of its class that has.

        Parameters
        ----------
        model : CatBoost, CatBoostRegressor or CatBoostClassifier
            The parameters; is left as it is.
        pool : catboost.Pool
            What is trained on. Its weights and its baseline are changed.
        """
        params = model.get_params()
        rounds, rate = int(params.pop("iterations", 1000)), params.get("learning_rate")
        if rate is None:
            raise ValueError("give the model a learning_rate: CatBoost's own depends on the number of rounds")
        classifies = isinstance(model, catboost.CatBoostClassifier)
        classes, labels = np.unique(np.asarray(pool.get_label()), return_inverse=True)
        default = "RMSE" if not classifies else "Logloss" if len(classes) <= 2 else "MultiClass"
        objective = params.setdefault("loss_function", default)
        if objective not in ("Logloss", "MultiClass", "MultiClassOneVsAll"):
            labels = classes[labels]
        loss = row_loss(objective, self._loss)
        seed = int(params.get("random_seed") or 0)
        models: list[catboost.CatBoost] = []
        for turn, chunk in enumerate(np.array_split(np.arange(rounds), min(self._turns, rounds))):
            pool.set_weight(self._rounds.weights())
            part = catboost.CatBoost({**params, "iterations": len(chunk), "random_seed": seed + turn})
            if models and objective in ("RMSE", "MAE", "Quantile", "MAPE"):
                part.set_params(boost_from_average=False)  # the first has started from it
            models.append(part.fit(pool))
            raw = part.predict(pool, prediction_type="RawFormulaVal").reshape(len(labels), -1)
            pool.set_baseline(raw)
            losses = loss(_predictions(raw, objective), labels)
            for _ in chunk:  # each draws other rows
                self._rounds.step(losses)
        whole = catboost.sum_models(models)
        if classifies:
            return catboost.to_classifier(whole)
        return catboost.to_regressor(whole) if isinstance(model, catboost.CatBoostRegressor) else whole


def _predictions(raw: Any, objective: Any) -> Any:
    """Raw values as what the objective speaks of."""
    if objective in ("Logloss", "CrossEntropy", "MultiClassOneVsAll"):
        return 1 / (1 + np.exp(-raw))
    if objective == "MultiClass":
        values = np.exp(raw - raw.max(axis=1, keepdims=True))
        return values / values.sum(axis=1, keepdims=True)
    return raw
