"""Table 1's Fashion-MNIST in PyTorch, with the authors' package: how often a run never learns one of the classes.

    python benches/peer/fashion.py DATA RUNS METHOD…     # standard, lap; DATA holds fashion_mnist/*-ubyte.gz
                                                         # needs torch, numpy and loss_adapted_plasticity==0.1.8

The settings are those of `lapwing paper table-1-fashion-mnist`: 784-16-16-10 with a softmax before the cross-entropy, which
has its own; Adam, 40 epochs of 225 batches. Printed is the greatest test accuracy of each run.
"""

import gzip
import statistics
import sys
from pathlib import Path

import numpy as np
import torch
from loss_adapted_plasticity import LossAdaptedPlasticity
from torch import nn

SOURCES, NOISY, CHUNK, BATCH, EPOCHS = 10, 6, 200, 200, 40


def read(file: Path, header: int) -> np.ndarray:
    return np.frombuffer(gzip.decompress(file.read_bytes()), dtype=np.uint8, offset=header)


def load(data: Path, part: str) -> tuple[torch.Tensor, torch.Tensor]:
    images = read(data / f"{part}-images-idx3-ubyte.gz", 16).reshape(-1, 784)
    labels = read(data / f"{part}-labels-idx1-ubyte.gz", 8)
    return torch.from_numpy(images / np.float32(255)), torch.from_numpy(labels.astype(np.int64))


def run(train, test, noise: str, method: str, seed: int) -> float:
    torch.manual_seed(seed)
    kept = torch.randperm(len(train[0]))[: len(train[0]) * 3 // 4]
    x, y = train[0][kept].clone(), train[1][kept]
    sources = torch.arange(len(x)) // CHUNK % SOURCES
    if noise == "replace-with-noise":
        noisy = torch.isin(sources, torch.randperm(SOURCES)[:NOISY])
        x[noisy] = torch.randn_like(x[noisy])
    model = nn.Sequential(
        *(nn.Linear(784, 16), nn.Dropout(0.2), nn.ReLU()),
        *(nn.Linear(16, 16), nn.Dropout(0.2), nn.ReLU()),
        *(nn.Linear(16, 10), nn.Softmax(dim=1)),
    )
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss(reduction="none")
    lap = LossAdaptedPlasticity(history_length=25, warmup_iters=100, depression_strength=0.5, leniency=0.5)
    best = 0.0
    for _ in range(EPOCHS):
        model.train()
        for batch in torch.randperm(len(x)).split(BATCH):
            losses = criterion(model(x[batch]), y[batch])
            if method == "lap":
                losses = lap(losses, sources[batch])
            optimiser.zero_grad()
            losses.mean().backward()
            optimiser.step()
        model.eval()
        with torch.no_grad():
            right = model(test[0]).argmax(dim=1) == test[1]
        best = max(best, 100 * right.double().mean().item())
    return best


def main() -> None:
    data = Path(sys.argv[1]) / "fashion_mnist"
    runs, methods = int(sys.argv[2]), sys.argv[3:]
    torch.set_num_threads(1)
    train, test = load(data, "train"), load(data, "t10k")
    for noise in ("original", "replace-with-noise"):
        for method in methods:
            best = []
            for seed in range(runs):
                best.append(run(train, test, noise, method, seed))
                print(f"{noise:20} {method:10} run {seed:2}: {best[-1]:.2f}", flush=True)
            low = sum(accuracy < 80 for accuracy in best)
            print(f"{noise:20} {method:10} mean {statistics.mean(best):.2f}, below 80: {low} of {runs}", flush=True)


if __name__ == "__main__":
    main()
