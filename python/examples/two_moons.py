"""Two moons from five sources, of which two lie: with and without LAP.

    python two_moons.py

Trains the same small network twice, prints a verdict per source, and checks what it promises: the liars are found,
nobody else is accused, and the network that listens to LAP is right more often.
"""

from __future__ import annotations

import numpy as np
import torch

from lapwing import LossAdaptedPlasticity

LIES = {"ward 1": 0.0, "ward 2": 0.0, "ward 3": 0.0, "ward 4": 0.5, "ward 5": 1.0}


def moons(rows: int, random: np.random.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    label = random.integers(0, 2, rows)
    angle = random.uniform(0, np.pi, rows)
    x = np.where(label == 0, np.cos(angle), 1 - np.cos(angle))
    y = np.where(label == 0, np.sin(angle), 0.5 - np.sin(angle))
    points = np.stack([x, y], axis=1) + random.normal(0, 0.15, (rows, 2))
    return torch.tensor(points, dtype=torch.float32), torch.tensor(label)


def train(lap: LossAdaptedPlasticity | None) -> float:
    """Accuracy on clean data."""
    random = np.random.default_rng(0)
    torch.manual_seed(0)
    points, truth = moons(600, random)
    names = np.array(list(LIES))
    sources = names[random.integers(0, len(names), 600)]
    lied = torch.tensor([random.random() < LIES[name] for name in sources])
    labels = torch.where(lied, 1 - truth, truth)

    model = torch.nn.Sequential(
        torch.nn.Linear(2, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 2)
    )
    optimiser = torch.optim.Adam(model.parameters(), lr=0.005)
    criterion = torch.nn.CrossEntropyLoss(reduction="none")
    for _ in range(80):
        for batch in torch.from_numpy(random.permutation(600)).split(60):
            losses = criterion(model(points[batch]), labels[batch])
            if lap is not None:
                losses = lap(losses, sources[batch.numpy()])
            optimiser.zero_grad()
            losses.mean().backward()
            optimiser.step()
    clean, answers = moons(5_000, random)
    return (model(clean).argmax(1) == answers).float().mean().item()


def main() -> None:
    torch.set_num_threads(1)  # the network is too small for more
    lap = LossAdaptedPlasticity(history_length=25, warmup_iters=0, leniency=0.8)
    with_lap, without = train(lap), train(None)
    table = lap.sources().to_dict()
    for name, verdict, weight in sorted(zip(table["source"], table["verdict"], table["weight"])):
        print(f"{name}  {LIES[name]:>4.0%} wrong  weight {weight:.3f}  {verdict}")
    print(f"accuracy on clean rows: {with_lap:.1%} with LAP, {without:.1%} without")

    verdicts = dict(zip(table["source"], table["verdict"]))
    assert verdicts == {name: "unreliable" if lies else "reliable" for name, lies in LIES.items()}, verdicts
    assert with_lap > without + 0.01, "LAP should be ahead here"
    print("as promised")


if __name__ == "__main__":
    main()
