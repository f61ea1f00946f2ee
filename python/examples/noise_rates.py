"""A ward whose rows are difficult is not a ward whose labels are wrong: noise rates beside LAP.

    python noise_rates.py

Two moons from five wards. One sends blurred rows with right labels, another draws half of its labels by lot. Prints what
both methods think of each ward, and checks what it promises: noise rates find the one and spare the other.
"""

from __future__ import annotations

import numpy as np
import torch

from lapwing import LossAdaptedPlasticity, NoiseRateLoss

BLUR = {"ward 1": 0.1, "ward 2": 0.1, "ward 3": 0.1, "blurred": 0.3, "by lot": 0.1}


def moons(sources: np.ndarray, random: np.random.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    label = random.integers(0, 2, len(sources))
    angle = random.uniform(0, np.pi, len(sources))
    x = np.where(label == 0, np.cos(angle), 1 - np.cos(angle))
    y = np.where(label == 0, np.sin(angle), 0.5 - np.sin(angle))
    blur = np.array([[BLUR[source]] for source in sources])
    points = np.stack([x, y], axis=1) + random.normal(0, 1, (len(sources), 2)) * blur
    label = np.where((sources == "by lot") & (random.random(len(sources)) < 0.5), random.integers(0, 2, len(sources)), label)
    return torch.tensor(points, dtype=torch.float32), torch.tensor(label)


def train(method: LossAdaptedPlasticity | NoiseRateLoss) -> dict[str, float]:
    """The weight of each ward."""
    random = np.random.default_rng(0)
    torch.manual_seed(0)
    sources = random.choice(list(BLUR), 2_000)
    points, labels = moons(sources, random)
    model = torch.nn.Sequential(torch.nn.Linear(2, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    cross_entropy = torch.nn.CrossEntropyLoss(reduction="none")
    for _ in range(40):
        for batch in torch.from_numpy(random.permutation(len(sources))).split(100):
            logits, names = model(points[batch]), sources[batch.numpy()]
            if isinstance(method, NoiseRateLoss):
                losses = method(logits, labels[batch], names)  # takes the place of cross_entropy and LAP
            else:
                losses = method(cross_entropy(logits, labels[batch]), names)
            optimiser.zero_grad()
            losses.mean().backward()
            optimiser.step()
    return method.source_weight_


def main() -> None:
    torch.set_num_threads(1)  # the network is too small for more
    lap = train(LossAdaptedPlasticity(history_length=25, warmup_iters=0, leniency=0.8))
    noise = NoiseRateLoss(classes=2, warmup=80)  # a tenth of the steps
    train(noise)
    rates = noise.source_noise_rate_
    for name in BLUR:
        print(f"{name:<8}  weight by LAP {lap[name]:.3f}  noise rate {rates[name]:.0%}")
    assert rates["by lot"] > 0.4 and max(rate for name, rate in rates.items() if name != "by lot") < 0.1
    assert lap["blurred"] < 0.5, "LAP cannot tell the two apart"
    print("as promised")


if __name__ == "__main__":
    main()
