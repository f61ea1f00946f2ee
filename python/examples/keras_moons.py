"""LAP in Keras, by the weights of ``train_on_batch``: two moons from five sources, of which two lie.

    KERAS_BACKEND=jax python keras_moons.py                   # or torch, or tensorflow

Checks what it promises.
"""

from __future__ import annotations

import os

os.environ.setdefault("KERAS_BACKEND", "jax")

import keras
import numpy as np

import lapwing

LIES = {"ward 1": 0.0, "ward 2": 0.0, "ward 3": 0.0, "ward 4": 0.5, "ward 5": 1.0}


def moons(rows: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    label = random.integers(0, 2, rows)
    angle = random.uniform(0, np.pi, rows)
    x = np.where(label == 0, np.cos(angle), 1 - np.cos(angle))
    y = np.where(label == 0, np.sin(angle), 0.5 - np.sin(angle))
    return np.stack([x, y], axis=1) + random.normal(0, 0.15, (rows, 2)), label


def main() -> None:
    random = np.random.default_rng(0)
    keras.utils.set_random_seed(0)
    x, truth = moons(600, random)
    sources = random.choice(list(LIES), 600)
    lied = random.random(600) < np.array([LIES[source] for source in sources])
    y = np.where(lied, 1 - truth, truth)
    layers = [keras.layers.Dense(64, "relu"), keras.layers.Dense(64, "relu"), keras.layers.Dense(2, "softmax")]
    model = keras.Sequential([keras.Input((2,)), *layers])
    model.compile(optimizer=keras.optimizers.Adam(0.005), loss="sparse_categorical_crossentropy")
    lap = lapwing.Lap(history_length=25, leniency=0.8)
    for _ in range(80):
        for batch in random.permutation(600).reshape(10, 60):
            own = model.predict_on_batch(x[batch])[np.arange(60), y[batch]]
            weights = lap.weigh(-np.log(np.maximum(own, 1e-7)), sources[batch])
            model.train_on_batch(x[batch], y[batch], sample_weight=weights)
    clean, answers = moons(5_000, random)
    accuracy = float((model.predict_on_batch(clean).argmax(1) == answers).mean())
    table = lap.sources()
    for name, verdict, weight in sorted(zip(table["source"], table["verdict"], table["weight"])):
        print(f"{name}  {LIES[name]:>4.0%} wrong  weight {weight:.3f}  {verdict}")
    print(f"accuracy on clean rows: {accuracy:.1%}")
    verdicts = dict(zip(table["source"], table["verdict"]))
    assert verdicts == {name: "unreliable" if lies else "reliable" for name, lies in LIES.items()}, verdicts
    assert accuracy > 0.95
    print("as promised")


if __name__ == "__main__":
    main()
