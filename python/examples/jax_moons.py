"""LAP in a training loop of JAX: two moons from five sources, of which two lie.

    python jax_moons.py

The weights are an argument of the loss, so that no gradient flows through them. Checks what it promises.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import lapwing

LIES = {"ward 1": 0.0, "ward 2": 0.0, "ward 3": 0.0, "ward 4": 0.5, "ward 5": 1.0}


def moons(rows: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    label = random.integers(0, 2, rows)
    angle = random.uniform(0, np.pi, rows)
    x = np.where(label == 0, np.cos(angle), 1 - np.cos(angle))
    y = np.where(label == 0, np.sin(angle), 0.5 - np.sin(angle))
    return np.stack([x, y], axis=1) + random.normal(0, 0.15, (rows, 2)), label


def logits(parameters: Any, x: Any) -> Any:
    *hidden, (w, b) = parameters
    for weight, bias in hidden:
        x = jax.nn.relu(x @ weight + bias)
    return x @ w + b


@jax.jit
def losses(parameters: Any, x: Any, y: Any) -> Any:
    return -jnp.take_along_axis(jax.nn.log_softmax(logits(parameters, x)), y[:, None], axis=1)[:, 0]


@jax.jit
def step(parameters: Any, momentum: Any, x: Any, y: Any, weights: Any) -> tuple[Any, Any]:
    gradient = jax.grad(lambda parameters: jnp.mean(weights * losses(parameters, x, y)))(parameters)
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, gradient)
    return jax.tree.map(lambda p, m: p - 0.05 * m, parameters, momentum), momentum


def main() -> None:
    random = np.random.default_rng(0)
    x, truth = moons(600, random)
    sources = random.choice(list(LIES), 600)
    lied = random.random(600) < np.array([LIES[source] for source in sources])
    y = np.where(lied, 1 - truth, truth)
    parameters: Any = [
        (random.normal(0, np.sqrt(2 / a), (a, b)).astype(np.float32), np.zeros(b, np.float32))
        for a, b in [(2, 64), (64, 64), (64, 2)]
    ]
    momentum = jax.tree.map(jnp.zeros_like, parameters)
    lap = lapwing.Lap(history_length=25, leniency=0.8)
    for _ in range(80):
        for batch in random.permutation(600).reshape(10, 60):
            weights = lap.weigh(losses(parameters, x[batch], y[batch]), sources[batch])
            parameters, momentum = step(parameters, momentum, x[batch], y[batch], weights)
    clean, answers = moons(5_000, random)
    accuracy = float((logits(parameters, clean).argmax(1) == answers).mean())
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
