"""`LapClassifier` and `LapRegressor`."""

import os
import pickle
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import lapwing
from lapwing import LapClassifier, LapRegressor

# Small and quick; what is planned for a table is tested in Rust.
QUICK = dict(
    hidden=(32,), epochs=60, batch_size=16, dropout=0.0, weight_decay=0.0, learning_rate=0.01, random_state=0, folds=0
)


@parametrize_with_checks([LapClassifier(**QUICK), LapRegressor(**QUICK)])
def test_the_conventions_of_scikit_learn(estimator, check):
    check(estimator)


def noisy(rows=1200, seed=0):
    """Source 3 has its labels turned around, of sources 0 to 4."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 4))
    sources = rng.integers(0, 5, rows)
    truth = X[:, 0] + X[:, 1] * X[:, 2] > 0
    return X, np.where(sources == 3, ~truth, truth), sources, truth


def test_a_bad_source_is_found_and_outvoted():
    X, y, sources, truth = noisy()
    model = LapClassifier(random_state=1, epochs=40).fit(X, y, sources=sources)
    assert model.source_reliability_["3"] < 0.1
    assert min(model.source_reliability_[s] for s in "0124") > 0.9
    verdicts = dict(zip(model.sources_["source"], model.sources_["verdict"]))
    assert verdicts == {"0": "reliable", "1": "reliable", "2": "reliable", "3": "unreliable", "4": "reliable"}
    plain = LapClassifier(random_state=1, epochs=40, depression_strength=0.0).fit(X, y, sources=sources)
    assert set(plain.source_reliability_.values()) == {1.0}
    assert model.score(X, truth) > plain.score(X, truth)
    assert model.n_iter_ == len(model.epochs_) and len(model.steps_) > 0
    assert model.sources_["rows"].sum() == model.n_rows_ == 1080
    assert "unreliable" in lapwing.report(model)


def test_what_is_wrong_with_a_source_comes_as_data():
    X, y, sources, _ = noisy()
    y = np.where(y, "<yes>", "no")
    model = LapClassifier(random_state=1, epochs=40).fit(X, y, sources=sources)
    assert {finding["source"] for finding in model.findings_} == {"3"}
    exchanged = next(finding for finding in model.findings_ if finding["fault"] == "exchanged-classes")
    assert {exchanged["first"], exchanged["second"]} == {"<yes>", "no"}
    assert 0.8 < exchanged["strength"] <= 1
    assert len(exchanged["rows"]) == 5
    assert (sources[exchanged["rows"]] == 3).all()
    assert (model.predict(X[exchanged["rows"]]) != y[exchanged["rows"]]).all()
    page = lapwing.report(model)
    assert "look exchanged" in exchanged["sentence"] and "look exchanged" in page
    assert "<yes>" not in page


def test_every_finding_is_on_a_source_that_is_flagged_or_gives_one_label_for_all():
    X, _, sources, truth = noisy()
    y = np.where(sources == 2, True, truth)
    model = LapClassifier(random_state=1, epochs=40).fit(X, y, sources=sources)
    found = {(finding["source"], finding["fault"]) for finding in model.findings_}
    assert ("2", "one-label") in found or ("2", "default-label") in found
    assert {source for source, _ in found} == {"2"}


def test_labels_are_judged_by_networks_that_have_not_seen_them():
    X, y, sources, truth = noisy()
    model = LapClassifier(random_state=1, epochs=40).fit(X, y, sources=sources)
    table = model.sources_.to_dict()
    of = {source: {name: table[name][at] for name in table} for at, source in enumerate(table["source"])}
    assert of["3"]["noise_rate"] > 0.5 and of["3"]["disagreement"] > 0.7
    for source in of.values():
        assert source["noise_rate_low"] <= source["noise_rate"] <= source["noise_rate_high"]
        assert 0 <= source["doubt"] <= 1 and 0 <= source["class_mix"] <= 1 and source["reason"].endswith(".")
        assert source["source"] == "3" or source["noise_rate"] < 0.15
    assert "exchanged-classes" in of["3"]["faults"].split() and of["0"]["faults"] == ""
    rows = model.rows_.to_dict()
    assert sorted(rows["row"]) == list(range(1200))
    assert rows["wrong"] == sorted(rows["wrong"], reverse=True)
    first = np.array(rows["row"][:100])
    assert (sources[first] == 3).mean() > 0.9
    assert (np.array(rows["suggestion"][:100]) == truth[first].astype(str)).mean() > 0.9
    page = lapwing.report(model)
    assert "Noise rate" in page and "Rows to check first" in page
    without = LapClassifier(random_state=1, epochs=5, folds=0).fit(X, y, sources=sources)
    assert without.rows_ is None and np.isnan(without.sources_["noise_rate"]).all()
    with pytest.raises(ValueError, match="folds is 1, but must be 0 or from 2 to 20"):
        LapClassifier(folds=1).fit(X, y, sources=sources)
    with pytest.raises(ValueError, match="targets are values"):
        LapRegressor(folds=3).fit(X, X[:, 0], sources=sources)


def test_inputs_are_examined_too():
    X, _, sources, truth = noisy()
    X[sources == 1, 3] = 7.5
    model = LapClassifier(**QUICK).fit(X, truth, sources=sources)
    (found,) = [finding for finding in model.findings_ if finding["source"] == "1"]
    assert found["fault"] == "constant-column" and found["column"] == "x3" and found["value"] == "7.5"
    assert (sources[found["rows"]] == 1).all()
    X[:, 0] = 1.0 + np.abs(X[:, 0])
    X[sources == 2, 0] *= 1000
    model = LapRegressor(**QUICK).fit(X, X[:, 1], sources=sources)
    faults = dict(zip(model.sources_["source"], model.sources_["faults"]))
    assert "column-unit" in faults["2"] and "constant-column" in faults["1"]


def test_every_method_of_the_list_trains_and_judges():
    X, y, sources, _ = noisy(600)
    for method in lapwing.methods():
        quick = dict(QUICK, epochs=10, method=method.name)
        model = LapClassifier(**quick).fit(X, y, sources=sources)
        assert set(model.sources_["source"]) == set("01234"), method
        for parameter in method.parameters:
            given = {parameter.name: parameter.default}
            same = LapClassifier(**quick, method_parameters=given).fit(X, y, sources=sources)
            assert np.array_equal(model.predict_proba(X), same.predict_proba(X)), parameter
            with pytest.raises(ValueError, match=f"must be {parameter.range}"):
                LapClassifier(**quick, method_parameters={parameter.name: -1.0}).fit(X, y, sources=sources)
        if method.classification_only:
            with pytest.raises(ValueError, match="classification"):
                LapRegressor(**quick).fit(X, X[:, 0], sources=sources)
    with pytest.raises(ValueError, match="forget-rate is a parameter of co-teaching, and the method is lap"):
        LapClassifier(**QUICK, method_parameters={"forget_rate": 0.1}).fit(X, y, sources=sources)
    with pytest.raises(ValueError, match="no method is called"):
        LapClassifier(**QUICK, method="magic").fit(X, y, sources=sources)


def test_regression_with_texts_as_sources_and_classes_of_text():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(900, 3))
    sources = np.array(["a", "b", "c", "d"])[rng.integers(0, 4, 900)]
    truth = 100 + 20 * X[:, 0]
    y = np.where(sources == "d", truth + rng.normal(0, 80, 900), truth)
    model = LapRegressor(random_state=0, epochs=40).fit(X, y, sources=sources.tolist())
    assert min(model.source_reliability_, key=model.source_reliability_.get) == "d"
    assert model.score(X, truth) > 0.9
    labels = np.where(X[:, 0] > 0, "yes", "no")
    words = LapClassifier(**QUICK).fit(X, labels)
    assert words.classes_.tolist() == ["no", "yes"] and words.score(X, labels) > 0.9
    assert words.source_reliability_ == {"all": 1.0}
    assert np.allclose(words.predict_proba(X).sum(axis=1), 1)


def test_the_same_seed_gives_the_same_bytes_and_pickles_predict_the_same():
    X, y, sources, _ = noisy(300)
    twins = [LapClassifier(**QUICK).fit(X, y, sources=sources) for _ in range(2)]
    twins.append(pickle.loads(pickle.dumps(twins[0])))
    first = twins[0].predict_proba(X)
    for twin in twins[1:]:
        assert np.array_equal(twin.predict_proba(X), first)
        assert twin.source_reliability_ == twins[0].source_reliability_
    other = clone(twins[0]).set_params(random_state=5).fit(X, y, sources=sources)
    assert not np.array_equal(other.predict_proba(X), first)


def test_pipelines_and_cross_validation():
    X, y, sources, _ = noisy(300)
    pipeline = make_pipeline(StandardScaler(), LapClassifier(**QUICK))
    pipeline.fit(X, y, lapclassifier__sources=sources)
    assert set(pipeline[-1].source_reliability_) == set("01234")
    scores = cross_val_score(LapClassifier(**QUICK), X, y, params={"sources": sources}, cv=2)
    assert len(scores) == 2


@pytest.mark.parametrize(
    ("parameters", "sources", "message"),
    [
        ({}, [1, 2], "300 rows came with 2 sources"),
        ({"history_length": 0}, None, "history_length"),
        ({"leniency": -1.0}, None, "leniency"),
        ({"dropout": 1.5}, None, "dropout"),
        ({"epochs": 0}, None, "at least 1"),
        ({"learning_rate": -1.0}, None, "learning rate"),
        ({"validation_fraction": 1.0}, None, "validation_fraction"),
        ({"hidden": (0,)}, None, "units"),
    ],
)
def test_bad_settings_are_refused_with_a_reason(parameters, sources, message):
    X, y, _, _ = noisy(300)
    with pytest.raises(ValueError, match=message):
        LapClassifier(**{**QUICK, **parameters}).fit(X, y, sources=sources)


LONG = """
import numpy as np, threading, time, lapwing
X = np.random.default_rng(0).normal(size=(20000, 20))
ticks = []
def tick():
    while True:
        ticks.append(time.monotonic())
        time.sleep(0.01)
threading.Thread(target=tick, daemon=True).start()
print("begun", flush=True)
try:
    lapwing.LapClassifier(epochs=10**6, patience=10**6).fit(X, X[:, 0] > 0, sources=np.arange(20000) % 7)
except KeyboardInterrupt:
    print("interrupted", len(ticks), flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="signals are different there")
def test_ctrl_c_ends_a_fit_and_other_threads_run_meanwhile():
    process = subprocess.Popen([sys.executable, "-c", LONG], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline().strip() == "begun"
    time.sleep(3)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    word, ticks = said.split()
    assert word == "interrupted" and process.returncode == 0
    assert int(ticks) > 10, "other threads stood still while training"


TREES = dict(model="trees", epochs=40, random_state=0, folds=0)


@pytest.mark.parametrize("estimator", [LapClassifier(**TREES), LapRegressor(**TREES)], ids=["classes", "values"])
def test_trees_keep_the_conventions_of_scikit_learn(estimator):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(int)
    copy = clone(estimator)
    assert copy.get_params() == estimator.get_params()
    first = copy.fit(X, y).predict(X)
    assert (clone(estimator).fit(X, y).predict(X) == first).all()
    assert (pickle.loads(pickle.dumps(copy)).predict(X) == first).all()
    assert copy.n_features_in_ == 3
    with pytest.raises(ValueError, match="3 features"):
        copy.predict(X[:, :2])
    with pytest.raises(ValueError, match="infinity"):
        copy.predict(np.full((1, 3), np.inf))


def test_trees_find_a_bad_source_and_take_missing_values():
    X, y, sources, truth = noisy()
    X[::7, 3] = np.nan
    model = LapClassifier(model="trees", random_state=1, epochs=120).fit(X, y, sources=sources)
    assert (model.model_, model.model_reason_) == ("trees", None)
    assert model.source_reliability_["3"] < 0.1
    assert min(model.source_reliability_[s] for s in "0124") > 0.9
    verdicts = dict(zip(model.sources_["source"], model.sources_["verdict"]))
    assert {source for source, verdict in verdicts.items() if verdict != "reliable"} == {"3"}
    assert model.score(X, truth) > 0.85
    assert model.feature_importances_.sum() == pytest.approx(1)
    assert model.feature_importances_.argmin() == 3
    assert (model.rule_["history_length"], model.rule_["leniency"]) == (20, 1.0)
    assert model.findings_ and "unreliable" in lapwing.report(model)
    values = LapRegressor(model="trees", random_state=1, epochs=60).fit(X, X[:, 0] * 2, sources=sources)
    assert values.score(X, X[:, 0] * 2) > 0.95
    network = LapClassifier(**QUICK)
    with pytest.raises(ValueError, match="NaN"):
        network.fit(X, y)
    with pytest.raises(AttributeError, match="mlp has no"):
        network.fit(X[:, :3], y).feature_importances_


def test_the_model_is_chosen_by_validation_rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(1200, 2))
    squares = (np.floor(6 * X).sum(axis=1) % 2).astype(float)
    model = LapRegressor(model="auto", random_state=0, epochs=80).fit(X, squares)
    assert model.model_ == "trees"
    assert model.model_reason_.startswith("its weighted validation mse is ") and "that of mlp" in model.model_reason_
    model = LapRegressor(model="auto", random_state=0, epochs=80).fit(X, X @ [3, -2])
    assert model.model_ == "mlp" and "that of trees" in model.model_reason_
    few = LapRegressor(model="auto", random_state=0, epochs=2).fit(X[:300], squares[:300])
    assert few.model_ == "mlp" and "30 validation rows" in few.model_reason_
    X[5, 1] = np.nan
    missing = LapRegressor(model="auto", random_state=0, epochs=2).fit(X, squares)
    assert missing.model_ == "trees" and "missing values" in missing.model_reason_


def test_what_trees_do_not_have_is_refused():
    X, y, sources, _ = noisy(100)
    for parameters, words in [
        (dict(hidden=[4]), "hidden is for networks"),
        (dict(batch_size=4), "batch_size is for networks"),
        (dict(method="group-dro"), "group-dro is for networks"),
        (dict(learning_rate=2.0), "learning rate"),
        (dict(leniency=-1.0), "leniency"),
    ]:
        with pytest.raises(ValueError, match=words):
            LapClassifier(model="trees", **parameters).fit(X, y, sources=sources)
    with pytest.raises(ValueError, match="forest.*trees, auto"):
        LapClassifier(model="forest").fit(X, y)
