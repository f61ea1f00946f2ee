"""Estimators in the manner of scikit-learn, on lapwing's own trainer: no PyTorch needed."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from lapwing import _lapwing
from lapwing._arrays import as_sources

__all__ = ["LapClassifier", "LapRegressor"]

_FEWEST_VALIDATION_ROWS = 10
"""With fewer there is no telling epochs apart: all rows are trained on, to the last epoch."""

_FOLDS = 3
_MOST_FOLDS = 20

_PARAMETERS = """
    Parameters
    ----------
    model : str, default "mlp"
        What is trained: "mlp" or "linear", networks; "trees", boosted trees, which take NaN for missing values; "auto",
        both trees and a network, of which the one is kept that does better on the validation rows. With fewer than 100
        of these "auto" is a network, and trees where rows are too many to try both.
    history_length : int, at least 1, or None, default None
        How many batch-mean losses of a source are remembered. None: 25, of trees 20.
    leniency : float, at least 0, or None, default None
        How many standard deviations above the others' mean loss a source may lie. None: 0.8, of trees 1.
    depression_strength : float, at least 0, or None, default None
        How fast weight falls as unreliability rises. None: so that a source that is always above falls to half weight
        after a tenth of the steps. 0 is plain training, with verdicts.
    warmup : int, at least 0, default 0
        Steps before the first judgement.
    method : str, default "lap"
        How sources are treated; `lapwing.methods()` lists the methods. Whatever it is, LAP's rule looks on.
        Trees have "lap" and "standard".
    method_parameters : dict or None, default None
        Parameters of the method, such as ``{"forget_rate": 0.3}`` for co-teaching.
    hidden : sequence of int or None, default None
        Units of the hidden layers. None: two layers that suit the size of the data.
    dropout : float in [0, 1) or None, default None
        Share of hidden units dropped at each step.
    weight_decay : float, at least 0, or None, default None
        Adam's decoupled weight decay.
    learning_rate : float above 0 or None, default None
        The highest; it falls to 0 along a cosine.
    batch_size : int, at least 1, or None, default None
        Rows per step.
    epochs : int, at least 1, or None, default None
        Most passes over the data; of trees, most rounds.
    patience : int, at least 1, or None, default None
        Epochs without a better validation score after which training ends.
    validation_fraction : float in [0, 1), default 0.1
        Share of rows held out to choose the best epoch; none where that would be fewer than 10 rows.
    folds : int or None, default None
        Networks that judge labels after training, each those that it has not seen: what noise rates, ``rows_`` and verdicts
        rest on. It costs as many trainings. None: 3 for classes. 0: none, and verdicts rest on the losses. For values there
        are none.
    random_state : int, RandomState or None, default None
        Decides first parameters, order, dropout and the rows held out.

    None stands for what is planned for the size of the data.

    Attributes
    ----------
    source_reliability_ : dict
        The weight of each source at the end, by name, in [0, 1].
    sources_ : Table
        A row per source: verdict and its ``reason``, unreliability, weight, losses and counts; where labels were judged
        ``noise_rate`` with its 95 % interval, ``disagreement``, ``doubt`` and ``class_mix``; and ``faults``, the words of
        what was found. The columns are those of ``sources.csv``.
    rows_ : Table or None
        Labels that were judged by a network that had not seen them, those first that are most likely wrong: ``row`` of
        ``X``, ``source``, ``label``, ``wrong`` (the probability that it is), ``label_probability``, ``suggestion`` and
        ``suggestion_probability``.
    steps_ : Table
        Loss, unreliability and weight per step and source, thinned where there are many.
    epochs_ : Table
        Losses per epoch.
    findings_ : list of dict
        What is wrong with sources: ``source``, ``fault`` with its numbers, ``strength`` in [0, 1], ``rows`` of ``X`` that
        show it (from 0), and the ``sentence``.
    n_iter_ : int
        Epochs made; of trees, rounds.
    model_ : str
        What was trained.
    model_reason_ : str or None
        With ``model="auto"``, why it is this one.
    feature_importances_ : array of shape (features,)
        What trees gained by each feature, as shares; networks have none.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.
"""


class _LapEstimator(BaseEstimator):
    def __init__(
        self,
        *,
        model: str = "mlp",
        history_length: int | None = None,
        leniency: float | None = None,
        depression_strength: float | None = None,
        warmup: int = 0,
        method: str = "lap",
        method_parameters: Mapping[str, float] | None = None,
        hidden: Sequence[int] | None = None,
        dropout: float | None = None,
        weight_decay: float | None = None,
        learning_rate: float | None = None,
        batch_size: int | None = None,
        epochs: int | None = None,
        patience: int | None = None,
        validation_fraction: float = 0.1,
        folds: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.model = model
        self.history_length = history_length
        self.leniency = leniency
        self.depression_strength = depression_strength
        self.warmup = warmup
        self.method = method
        self.method_parameters = method_parameters
        self.hidden = hidden
        self.dropout = dropout
        self.weight_decay = weight_decay
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.epochs = epochs
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.folds = folds
        self.random_state = random_state

    def _train(self, X: npt.NDArray[Any], targets: npt.NDArray[Any], labels: list[str], sources: Any) -> None:
        if not 0 <= self.validation_fraction < 1:
            raise ValueError(f"validation_fraction is {self.validation_fraction}, but must be in [0, 1)")
        folds = self._folds(bool(labels))
        names, codes = _sources(sources, len(X))
        random = check_random_state(self.random_state)
        order = random.permutation(len(X)).astype(np.uint32)
        held = int(self.validation_fraction * len(X))
        held = held if held >= _FEWEST_VALIDATION_ROWS else 0
        valid, train = np.sort(order[:held]), np.sort(order[held:])
        self.seed_ = int(random.randint(np.iinfo(np.int32).max))
        known = X[train]
        self._mean, spread = known.mean(axis=0), known.std(axis=0)
        if np.isnan(self._mean).any():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # a column may hold nothing but missing values
                self._mean = np.nan_to_num(np.nanmean(known, axis=0))
                spread = np.nan_to_num(np.nanstd(known, axis=0))
        self._scale = np.where(spread > 1e-12 * np.abs(self._mean), spread, 1.0)
        trained = _lapwing.train_network(
            self._rows(X),
            np.ascontiguousarray(X, dtype=np.float64),
            [str(name) for name in getattr(self, "feature_names_in_", [f"x{at}" for at in range(X.shape[1])])],
            targets,
            labels,
            codes,
            names,
            train,
            valid,
            {
                "seed": self.seed_,
                "model": str(self.model),
                "history_length": self.history_length,
                "leniency": self.leniency,
                "depression_strength": self.depression_strength,
                "warmup": self.warmup,
                "method": self.method,
                "method_parameters": dict(self.method_parameters or {}),
                "hidden": None if self.hidden is None else [int(units) for units in self.hidden],
                "dropout": self.dropout,
                "weight_decay": self.weight_decay,
                "learning_rate": self.learning_rate,
                "batch_size": self.batch_size,
                "epochs": self.epochs,
                "patience": self.patience,
                "folds": folds,
            },
        )
        self._network = trained.network
        self.sources_ = trained.sources
        self.steps_ = trained.steps
        self.epochs_ = trained.epochs
        self.rows_ = trained.rows
        self.findings_ = json.loads(trained.findings)
        self._judged = json.loads(trained.judged)
        self.n_iter_ = len(trained.epochs)
        self.n_rows_ = len(train)
        self.model_, self.model_reason_ = trained.model, trained.model_reason
        history_length, leniency, depression_strength = trained.rule
        self.rule_ = {
            "history_length": history_length,
            "leniency": leniency,
            "depression_strength": depression_strength,
            "task": "classification" if labels else "regression",
            "method": self.method,
            "folds": trained.folds,
        }
        # A source of which every row was held out was never judged.
        self.source_reliability_ = dict.fromkeys(names, 1.0)
        self.source_reliability_.update(zip(self.sources_["source"], self.sources_["weight"].tolist()))

    def _folds(self, classes: bool) -> int:
        if self.folds is None:
            return _FOLDS if classes else 0
        if self.folds and not classes:
            raise ValueError(f"folds is {self.folds}, but networks judge labels, and targets are values")
        if self.folds not in (0, *range(2, _MOST_FOLDS + 1)):
            raise ValueError(f"folds is {self.folds}, but must be 0 or from 2 to {_MOST_FOLDS}")
        return int(self.folds)

    def _rows(self, X: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        limit = np.finfo(np.float32).max
        return np.ascontiguousarray(np.clip((X - self._mean) / self._scale, -limit, limit), dtype=np.float32)

    def _outputs(self, X: Any) -> npt.NDArray[np.float64]:
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False, ensure_all_finite=self._finite(self.model_))
        return self._network.predict(self._rows(X))

    @staticmethod
    def _finite(model: str) -> Any:
        """Missing values are for trees; scikit-learn says which numbers are refused."""
        return "allow-nan" if model in ("trees", "auto") else True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._finite(self.model) == "allow-nan"
        return tags

    @property
    def feature_importances_(self) -> npt.NDArray[np.float64]:
        check_is_fitted(self)
        shares = self._network.importance
        if shares is None:
            raise AttributeError(f"{self.model_} has no feature_importances_: trees have")
        return np.array(shares)


def _sources(sources: Any, rows: int) -> tuple[list[str], npt.NDArray[np.uint32]]:
    """Names, and for each row the number of its own."""
    if sources is None:
        return ["all"], np.zeros(rows, np.uint32)
    items = as_sources(sources)
    if len(items) != rows:
        raise ValueError(f"{rows} rows came with {len(items)} sources: there must be one source per row")
    keys = items if isinstance(items, np.ndarray) else np.array([str(item) for item in items])
    names, codes = np.unique(keys, return_inverse=True)
    return [str(name) for name in names], codes.astype(np.uint32).reshape(-1)


class LapClassifier(ClassifierMixin, _LapEstimator):
    __doc__ = f"""A network, or trees, that classify rows from many sources, and weigh the sources by their reliability.
{_PARAMETERS}    classes_ : array
        The classes.

    Examples
    --------
    >>> import numpy as np
    >>> from lapwing import LapClassifier
    >>> random = np.random.default_rng(0)
    >>> X = random.normal(size=(600, 2))
    >>> sources = np.arange(600) % 4
    >>> y = (X[:, 0] > 0) ^ ((sources == 3) & (random.random(600) < 0.9))     # source 3 is mostly wrong
    >>> model = LapClassifier(random_state=0, epochs=60).fit(X, y, sources=sources)
    >>> min(model.source_reliability_, key=model.source_reliability_.get)
    '3'
    """

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike, sources: Any = None) -> LapClassifier:
        """Trains.

        Parameters
        ----------
        X : array of shape (rows, features)
            Numbers, all finite; for trees, NaN stands for one that is missing.
        y : array of shape (rows,)
            The class of each row.
        sources : array or list of shape (rows,), optional
            Where each row came from: texts or integers. Without it all rows count the same.
        """
        values, labels = validate_data(self, X, y, dtype=np.float64, ensure_all_finite=self._finite(self.model))
        check_classification_targets(labels)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y holds one class only, {self.classes_[0]!r}: there is nothing to tell apart")
        self._train(values, codes.astype(np.uint32), [str(label) for label in self.classes_], sources)
        return self

    def predict_proba(self, X: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """The probability of each class, in the order of ``classes_``."""
        probabilities = self._outputs(X)
        return probabilities / probabilities.sum(axis=1, keepdims=True)

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """The most probable class of each row."""
        best = self._outputs(X).argmax(axis=1)
        return self.classes_[best]


class LapRegressor(RegressorMixin, _LapEstimator):
    __doc__ = f"""A network, or trees, that predict a number from rows of many sources, and weigh the sources by their reliability.
{_PARAMETERS}
    Examples
    --------
    >>> import numpy as np
    >>> from lapwing import LapRegressor
    >>> random = np.random.default_rng(0)
    >>> X = random.normal(size=(600, 2))
    >>> sources = [f"meter {{number}}" for number in np.arange(600) % 4]
    >>> y = np.where(np.arange(600) % 4 == 3, random.normal(size=600) * 3, X.sum(axis=1))
    >>> model = LapRegressor(random_state=0, epochs=60).fit(X, y, sources=sources)
    >>> min(model.source_reliability_, key=model.source_reliability_.get)
    'meter 3'
    """

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike, sources: Any = None) -> LapRegressor:
        """Trains.

        Parameters
        ----------
        X : array of shape (rows, features)
            Numbers, all finite; for trees, NaN stands for one that is missing.
        y : array of shape (rows,)
            What is to be predicted.
        sources : array or list of shape (rows,), optional
            Where each row came from: texts or integers. Without it all rows count the same.
        """
        values, targets = validate_data(
            self, X, y, dtype=np.float64, y_numeric=True, ensure_all_finite=self._finite(self.model)
        )
        self._train(values, np.asarray(targets, dtype=np.float64), [], sources)
        return self

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """The value of each row."""
        return self._outputs(X)[:, 0]
