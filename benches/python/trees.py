"""Boosted trees on California Housing with bad sources: plain, with a robust loss, with LAP, and on clean data.

    python benches/python/trees.py DATA [lightgbm xgboost catboost]     # DATA/california_housing/california_housing.csv

Ten sources at random; four of them are given uniform targets. Test MSE on 20 % clean rows, 300 rounds at learning rate 0.1,
mean of three seeds; and over 20 seeds the lowest weight that LAP leaves to a source on clean data. One thread.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Any

import numpy as np

ROUNDS, SEEDS, CLEAN_SEEDS = 300, 3, 20


def split(table: np.ndarray, seed: int, bad: int) -> tuple[Any, ...]:
    """Rows, targets and sources to train on, rows and targets to test on, and who is bad."""
    random = np.random.default_rng(seed)
    table = table[random.permutation(len(table))]
    cut = len(table) * 4 // 5
    X, y = table[:cut, :-1], table[:cut, -1].copy()
    sources = random.integers(0, 10, cut)
    liars = random.choice(10, bad, replace=False)
    lied = np.isin(sources, liars)
    y[lied] = random.uniform(table[:, -1].min(), table[:, -1].max(), lied.sum())
    return X, y, sources, table[cut:, :-1], table[cut:, -1], set(map(str, liars))


def lightgbm(X: Any, y: Any, sources: Any, test: Any, method: str) -> tuple[Any, Any]:
    import lightgbm as lgb

    from lapwing.lightgbm import LapCallback

    train_set = lgb.Dataset(X, y)
    lap = [LapCallback(train_set, sources)] if method == "lap" else []
    params = {"objective": "huber" if method == "robust" else "regression", "verbose": -1, "num_threads": 1}
    return lgb.train(params, train_set, ROUNDS, callbacks=lap).predict(test), lap


def xgboost(X: Any, y: Any, sources: Any, test: Any, method: str) -> tuple[Any, Any]:
    import xgboost as xgb

    from lapwing.xgboost import LapCallback

    dtrain = xgb.DMatrix(X, y)
    lap = [LapCallback(dtrain, sources)] if method == "lap" else []
    objective = "reg:pseudohubererror" if method == "robust" else "reg:squarederror"
    params = {"objective": objective, "eta": 0.1, "nthread": 1}
    return xgb.train(params, dtrain, ROUNDS, callbacks=lap).predict(xgb.DMatrix(test)), lap


def catboost(X: Any, y: Any, sources: Any, test: Any, method: str) -> tuple[Any, Any]:
    import catboost as cb

    from lapwing.catboost import LapFit

    loss = "Huber:delta=1.0" if method == "robust" else "RMSE"
    model = cb.CatBoostRegressor(
        iterations=ROUNDS, learning_rate=0.1, loss_function=loss, thread_count=1, verbose=False, allow_writing_files=False
    )
    if method == "lap":
        lap = LapFit(sources)
        return lap.fit(model, cb.Pool(X, y)).predict(test), [lap]
    return model.fit(X, y).predict(test), []


def compare(name: str, train: Any, table: np.ndarray) -> None:
    scores: dict[str, list[float]] = {"clean": [], "plain": [], "robust": [], "lap": []}
    exactly = 0
    for seed in range(SEEDS):
        for method in scores:
            X, y, sources, test, truth, liars = split(table, seed, 0 if method == "clean" else 4)
            said, lap = train(X, y, sources, test, method)
            scores[method].append(float(np.mean((said - truth) ** 2)))
        found = lap[0].sources()
        exactly += {s for s, verdict in zip(found["source"], found["verdict"]) if verdict == "unreliable"} == liars
    means = {method: np.mean(values) for method, values in scores.items()}
    lowest = []
    for seed in range(CLEAN_SEEDS):
        X, y, sources, test, _, _ = split(table, 100 + seed, 0)
        lowest.append(min(train(X, y, sources, test, "lap")[1][0].sources()["weight"]))
    print(
        f"{name:<9} plain {means['plain']:.3f}  robust loss {means['robust']:.3f}  LAP {means['lap']:.3f}  "
        f"clean {means['clean']:.3f} (LAP / clean {means['lap'] / means['clean']:.2f}); exactly the four unreliable in "
        f"{exactly} of {SEEDS}; lowest weight of a clean source over {CLEAN_SEEDS} seeds: {min(lowest):.2f}",
        flush=True,
    )


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    with open(Path(sys.argv[1]) / "california_housing" / "california_housing.csv", newline="") as file:
        table = np.array(list(csv.reader(file))[1:], dtype=float)
    for name in sys.argv[2:] or ["lightgbm", "xgboost", "catboost"]:
        compare(name, {"lightgbm": lightgbm, "xgboost": xgboost, "catboost": catboost}[name], table)


if __name__ == "__main__":
    main()
