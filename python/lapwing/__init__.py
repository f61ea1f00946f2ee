"""Training on data from many sources of unknown reliability: Loss Adapted Plasticity (LAP).

A source (a hospital, a device, an annotator) whose loss stays above that of the others loses weight, step by step, so
that training uses everybody early and only the reliable sources late, when networks start to memorise noise.

===================================  ===================================================================
`LossAdaptedPlasticity`              a PyTorch module: losses and sources in, weighted losses out
`Lap`, `lapwing.numpy.weigh`         the same for NumPy, JAX and anything else that turns into an array
`NoiseRate`                          a noise rate per source: probabilities, labels and sources in, weights out
`NoiseRateLoss`                      the same as a PyTorch module: logits, labels and sources in, weighted losses out
`LapClassifier`, `LapRegressor`      scikit-learn estimators with ``fit(X, y, sources=...)``
`methods`                            the methods that the estimators can train with, and their parameters
`replay`                             the rule over a log of losses from any training run
`leniency_for_false_alarm`           the leniency by how often clean sources may be accused
`plot`, `report`                     a picture or an HTML page of what the rule found
`log_sources`, `MlflowWriter`        the weight of each source for TensorBoard or MLflow
`lapwing.lightgbm`, `.xgboost`,      callbacks for boosted trees (for CatBoost a fit in turns)
`.catboost`
`lapwing.lightning`,                 a mixin and a callback for Lightning; a Trainer for Hugging Face
`.transformers`
`words`                              the words of a text, for models of texts that were exported as ONNX
`lapwing.flower`                     a strategy for Flower, where sources may not share their data
===================================  ===================================================================

Importing `lapwing` imports NumPy and nothing else; PyTorch, scikit-learn and matplotlib are imported when used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from lapwing._lapwing import Table, __version__, words
from lapwing._leniency import false_alarm_rate, leniency_for_false_alarm
from lapwing._methods import methods
from lapwing._noise import NoiseRate
from lapwing._plot import plot
from lapwing._replay import Replay, replay
from lapwing._report import report
from lapwing._writers import MlflowWriter, log_sources
from lapwing.numpy import Lap

if TYPE_CHECKING:
    from lapwing.sklearn import LapClassifier, LapRegressor
    from lapwing.torch import LossAdaptedPlasticity, NoiseRateLoss

__all__ = [
    "Lap",
    "LapClassifier",
    "LapRegressor",
    "LossAdaptedPlasticity",
    "MlflowWriter",
    "NoiseRate",
    "NoiseRateLoss",
    "Replay",
    "Table",
    "__version__",
    "false_alarm_rate",
    "leniency_for_false_alarm",
    "log_sources",
    "methods",
    "plot",
    "replay",
    "report",
    "words",
]

_MODULES = {
    "LapClassifier": "lapwing.sklearn",
    "LapRegressor": "lapwing.sklearn",
    "LossAdaptedPlasticity": "lapwing.torch",
    "NoiseRateLoss": "lapwing.torch",
}


def __getattr__(name: str) -> Any:
    """What needs a further package is imported when it is asked for."""
    if name not in _MODULES:
        raise AttributeError(f"module 'lapwing' has no attribute {name!r}")
    module = _MODULES[name]
    try:
        value = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        extra = module.removeprefix("lapwing.")
        if error.name != extra:
            raise
        raise ImportError(f"lapwing.{name} needs {extra}: pip install 'lapwing-ml[{extra}]'") from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
