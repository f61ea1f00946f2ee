"""LAP in LightGBM, XGBoost and CatBoost."""

import doctest
import importlib

import numpy as np
import pytest

import lapwing
from lapwing._rounds import Rounds, row_loss

ROWS = 3000


def table(task, seed=0, clean=False):
    """Six wards, of which the last two have targets that have nothing to do with the rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(ROWS, 4))
    ward = np.array([f"ward {i}" for i in rng.integers(1, 7, ROWS)])
    value = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(0, 0.1, ROWS)
    truth = {"regression": value, "binary": (value > 0).astype(int), "classes": np.digitize(value, [-1, 1])}[task]
    bad = np.isin(ward, ["ward 5", "ward 6"]) & (not clean)
    return X, np.where(bad, rng.permutation(truth), truth), ward, truth


def lightgbm(X, y, ward, objective, **rule):
    lgb = pytest.importorskip("lightgbm")
    from lapwing.lightgbm import LapCallback

    train_set = lgb.Dataset(X, y)
    lap = LapCallback(train_set, ward, **rule)
    params = {"objective": objective, "verbose": -1, "num_threads": 1}
    if objective == "multiclass":
        params["num_class"] = 3
    return lgb.train(params, train_set, 120, callbacks=[lap]).predict(X), lap


def xgboost(X, y, ward, objective, **rule):
    xgb = pytest.importorskip("xgboost")
    from lapwing.xgboost import LapCallback

    dtrain = xgb.DMatrix(X, y)
    lap = LapCallback(dtrain, ward, **rule)
    params = {"objective": objective, "nthread": 1, "eta": 0.1, "max_depth": 5}
    if objective.startswith("multi"):
        params["num_class"] = 3
    return xgb.train(params, dtrain, 120, callbacks=[lap]).predict(xgb.DMatrix(X)), lap


def catboost(X, y, ward, objective, **rule):
    cb = pytest.importorskip("catboost")
    from lapwing.catboost import LapFit

    kind = cb.CatBoostRegressor if objective == "RMSE" else cb.CatBoostClassifier
    model = kind(iterations=120, learning_rate=0.1, thread_count=1, verbose=False, allow_writing_files=False)
    lap = LapFit(ward, **rule)
    model = lap.fit(model, cb.Pool(X, y))
    assert model.tree_count_ == 120 and type(model) is kind
    return (model.predict(X) if objective == "RMSE" else model.predict_proba(X)), lap


KINDS = [
    (lightgbm, "regression", "regression"),
    (lightgbm, "huber", "regression"),
    (lightgbm, "binary", "binary"),
    (lightgbm, "multiclass", "classes"),
    (xgboost, "reg:squarederror", "regression"),
    (xgboost, "binary:logistic", "binary"),
    (xgboost, "multi:softprob", "classes"),
    (xgboost, "multi:softmax", "classes"),
    (catboost, "RMSE", "regression"),
    (catboost, "Logloss", "binary"),
    (catboost, "MultiClass", "classes"),
]


@pytest.mark.parametrize(("train", "objective", "task"), KINDS, ids=lambda kind: getattr(kind, "__name__", kind))
def test_bad_sources_lose_their_weight_and_the_model_is_better_for_it(train, objective, task):
    X, y, ward, truth = table(task)
    with_lap, lap = train(X, y, ward, objective)
    without, idle = train(X, y, ward, objective, depression_strength=0.0)
    weights = dict(zip(lap.sources()["source"], lap.sources()["weight"]))
    assert max(weights["ward 5"], weights["ward 6"]) < 0.1, weights
    assert min(weight for name, weight in weights.items() if name < "ward 5") > 0.9, weights
    assert set(idle.sources()["weight"]) == {1.0}

    def error(said):
        if task == "regression":
            return np.mean((said - truth) ** 2)
        if task == "binary" and said.ndim == 1:
            said = said > 0.5
        return np.mean((said.argmax(1) if said.ndim == 2 else said) != truth)

    assert error(with_lap) < 0.8 * error(without)
    assert "ward 5" in lapwing.report(lap.lap)


@pytest.mark.parametrize("train", [lightgbm, xgboost, catboost])
def test_clean_sources_keep_their_weight(train):
    X, y, ward, _ = table("regression", seed=1, clean=True)
    objective = {lightgbm: "regression", xgboost: "reg:squarederror", catboost: "RMSE"}[train]
    _, lap = train(X, y, ward, objective)
    assert min(lap.sources()["weight"]) > 0.9


def test_weights_of_rows_are_multiplied_by_those_of_their_source():
    rounds = Rounds(
        ["a", "b", "a"], [2.0, 3.0, 4.0], history_length=1, leniency=1.0, depression_strength=50.0, rows=4, seed=0
    )
    assert rounds.weights().tolist() == [2, 3, 4]
    for _ in range(10):
        weights = rounds.step(np.array([0.1, 5.0, 0.2]))
    assert weights[[0, 2]].tolist() == [2, 4] and 0 < weights[1] < 1
    assert weights[1] == pytest.approx(3 * rounds.lap.weight("b"))


def test_what_lightgbm_is_given_changes_what_it_learns():
    """It holds only as long as LightGBM looks at the weights of the training data in every round."""
    lgb = pytest.importorskip("lightgbm")
    X, y, ward, _ = table("regression")
    own = np.where(ward == "ward 1", 2.0, 1.0)

    def predictions(weights, callbacks):
        train_set = lgb.Dataset(X, y, weight=weights)
        return lgb.train({"verbose": -1, "num_threads": 1}, train_set, 20, callbacks=callbacks(train_set)).predict(X)

    def set_at_ten(train_set):
        def callback(env):
            if env.iteration == 10:
                env.model.train_set.set_weight(np.where(ward == "ward 1", 2.0, 1e-3))

        callback.before_iteration = True
        return [callback]

    assert not np.allclose(predictions(own, set_at_ten), predictions(own, lambda _: []))


def test_objectives_that_are_not_known_need_a_loss():
    assert row_loss("RMSE", None) is row_loss("regression", None) is row_loss("reg:squarederror", None)
    assert row_loss("Quantile:alpha=0.3", None) is row_loss("mae", None)
    with pytest.raises(ValueError, match="lambdarank.*give loss="):
        row_loss("lambdarank", None)
    lgb = pytest.importorskip("lightgbm")
    from lapwing.lightgbm import LapCallback

    X, y, ward, _ = table("regression")
    train_set = lgb.Dataset(X, np.exp(y))
    lap = LapCallback(train_set, ward, loss=lambda said, label: said - label * np.log(said))
    lgb.train({"objective": "poisson", "verbose": -1, "num_threads": 1}, train_set, 60, callbacks=[lap])
    assert lap.lap.step == 59 and len(lap.sources()) == 6


def test_what_cannot_be_is_refused():
    lgb = pytest.importorskip("lightgbm")
    from lapwing.lightgbm import LapCallback

    X, y, ward, _ = table("regression")
    train_set = lgb.Dataset(X, y)
    with pytest.raises(ValueError, match="rows is 0"):
        LapCallback(train_set, ward, rows=0)
    lap = LapCallback(train_set, ward)
    with pytest.raises(ValueError, match="another train_set"):
        lgb.cv({"verbose": -1}, lgb.Dataset(X, y), 5, callbacks=[lap], stratified=False)
    short = lgb.Dataset(X, y)
    with pytest.raises(Exception, match="sources|[Ll]ength"):
        lgb.train({"verbose": -1}, short, 5, callbacks=[LapCallback(short, ward[:-1])])
    cb = pytest.importorskip("catboost")
    from lapwing.catboost import LapFit

    with pytest.raises(ValueError, match="learning_rate"):
        LapFit(ward).fit(cb.CatBoostRegressor(iterations=5), cb.Pool(X, y))


@pytest.mark.parametrize("library", ["lightgbm", "xgboost", "catboost"])
def test_examples_in_the_documentation(library):
    pytest.importorskip(library)
    assert doctest.testmod(importlib.import_module(f"lapwing.{library}")).failed == 0
