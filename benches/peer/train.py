"""A training step and whole experiments, ours beside PyTorch's. Called by train.sh: train.py STEP-PROGRAM LAPWING DATA

Every contestant is a process of its own, two threads each. They take turns: "N" on standard input makes one do N steps and
answer with the median seconds per step; "end" makes it answer with its peak resident size in bytes.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

THREADS = 2
#         name in the table               key       batch  turns  steps per turn
WORKLOADS = [
    ("MLP 784-16-16-10, batch 200, Adam", "mnist", 200, 15, 200),
    ("MLP 2-100-100-2, batch 128, Adam", "moons", 128, 15, 200),
    ("MLP 20-2000-2000-5, batch 512, forward and backward", "wide", 512, 9, 5),
    ("CNN 3 × (conv 3×3, ReLU, pool), batch 128, Adam", "cnn", 128, 9, 5),
    ("ResNet-20, 3×32×32, batch 128, SGD with momentum", "resnet", 128, 7, 3),
    ("LSTM 2 × 512, sequence 256, batch 128, Adam", "lstm", 128, 3, 1),
    ("Transformer, 2 layers, sequence 128, batch 256, Adam", "transformer", 256, 3, 1),
    ("ResNet-1D, 12×1000, batch 64, Adam", "resnet1d", 64, 7, 3),
    ("bag of 100 of 100,000 words, batch 64, Adam", "bag", 64, 9, 20),
    ("ResNet-18, 3×64×64, batch 64, SGD with momentum", "resnet18", 64, 5, 2),
    ("PreAct-ResNet-18, 3×32×32, two views of 128, SGD with momentum", "preact", 128, 5, 1),
]

# Our side of these is in a program of its own.
SEQUENCES = {"lstm", "transformer", "resnet1d", "bag"}


def main():
    ours, lapwing, data = sys.argv[1:4]
    wanted = sys.argv[4:]
    print("| step | PyTorch, ms | tuned | ours | memory: PyTorch, MB | ours, MB |")
    print("|---|---|---|---|---|---|")
    for name, key, _, turns, steps in WORKLOADS:
        if wanted and key not in wanted:
            continue
        commands = [
            [sys.executable, __file__, "--worker", key, "default"],
            [sys.executable, __file__, "--worker", key, "tuned"],
            [str(Path(ours).with_name("peer-sequence")) if key in SEQUENCES else ours, key],
        ]
        environment = os.environ | {"RAYON_NUM_THREADS": str(THREADS)}
        workers = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
            for command in commands
        ]

        def ask(worker, line):
            worker.stdin.write(f"{line}\n")
            worker.stdin.flush()
            return float(worker.stdout.readline())

        for worker in workers:
            ask(worker, steps)  # the first turn warms up
        times = [[ask(worker, steps) for worker in workers] for _ in range(turns)]
        memory = [ask(worker, "end") / 2**20 for worker in workers]
        for worker in workers:
            worker.wait()
        default = statistics.median(turn[0] for turn in times)
        tuned, own = (statistics.median(turn[i] / turn[0] for turn in times) for i in (1, 2))
        print(
            f"| {name} | {1e3 * default:.2f} | {tuned:.2f} | {own:.2f} | {memory[0]:.0f} | {memory[2]:.0f} |",
            flush=True,
        )
    if not wanted or "experiments" in wanted:
        experiments(lapwing, data)


def experiments(lapwing, data):
    """Whole runs with LAP: `lapwing paper` (the whole process) against a loop in PyTorch with the authors' package
    (without the seconds that importing takes, and without a DataLoader, which would be slower)."""
    print("\n| experiment with LAP | PyTorch and package, s | ours |")
    print("|---|---|---|")
    for name, key, identifier, noise in [
        ("California Housing, 200 epochs", "california", "california", "random-target"),
        ("Fashion-MNIST, 40 epochs", "fashion", "table-1-fashion-mnist", "random-label"),
        ("Two moons, 25 epochs", "toy", "toy", None),
    ]:
        theirs, own = [], []
        for _ in range(3):
            run = [sys.executable, __file__, "--experiment", key, data]
            theirs.append(float(subprocess.run(run, check=True, capture_output=True, text=True).stdout))
            own.append(ours_whole(lapwing, identifier, noise, data))
        ratio = statistics.median(a / b for a, b in zip(own, theirs))
        print(f"| {name} | {statistics.median(theirs):.1f} | {ratio:.2f} |", flush=True)


def ours_whole(lapwing, identifier, noise, data):
    with tempfile.TemporaryDirectory() as out:
        command = [lapwing, "paper", identifier, "--methods", "lap", "--runs", "1", "--data", data, "--out", out, "--quiet"]
        if noise:
            command += ["--noise", noise]
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - start


def models():
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self, inputs, outputs, stride):
            super().__init__()
            self.a = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
            self.b = nn.BatchNorm2d(outputs)
            self.c = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
            self.d = nn.BatchNorm2d(outputs)
            self.grows = outputs - inputs

        def forward(self, x):
            y = self.d(self.c(torch.relu(self.b(self.a(x)))))
            if self.grows:
                half = self.grows // 2
                x = nn.functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, half, half))
            return torch.relu(x + y)

    def resnet():
        layers = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
        width = 16
        for outputs in (16, 32, 64):
            for _ in range(3):
                layers.append(Block(width, outputs, 2 if outputs != width else 1))
                width = outputs
        return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))

    class Basic(nn.Module):
        def __init__(self, inputs, outputs):
            super().__init__()
            stride = 1 if inputs == outputs else 2
            self.a = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
            self.b = nn.BatchNorm2d(outputs)
            self.c = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
            self.d = nn.BatchNorm2d(outputs)
            self.shortcut = nn.Identity() if inputs == outputs else nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

        def forward(self, x):
            return torch.relu(self.d(self.c(torch.relu(self.b(self.a(x))))) + self.shortcut(x))

    def resnet18():
        layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
        width = 64
        for outputs in (64, 128, 256, 512):
            layers += [Basic(width, outputs), Basic(outputs, outputs)]
            width = outputs
        return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 200))

    class PreAct(nn.Module):
        def __init__(self, inputs, outputs):
            super().__init__()
            stride = 1 if inputs == outputs else 2
            self.a = nn.BatchNorm2d(inputs)
            self.b = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
            self.c = nn.BatchNorm2d(outputs)
            self.d = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
            self.shortcut = nn.Identity() if inputs == outputs else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

        def forward(self, x):
            x = torch.relu(self.a(x))
            return self.d(torch.relu(self.c(self.b(x)))) + self.shortcut(x)

    def preact():
        layers = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
        width = 64
        for outputs in (64, 128, 256, 512):
            layers += [PreAct(width, outputs), PreAct(outputs, outputs)]
            width = outputs
        return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))

    def cnn():
        layers, width = [], 3
        for outputs in (32, 64, 128):
            layers += [nn.Conv2d(width, outputs, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(2)]
            width = outputs
        return nn.Sequential(*layers, nn.Flatten(), nn.Linear(2048, 64), nn.ReLU(), nn.Linear(64, 10))

    def mlp(*sizes):
        layers = []
        for a, b in zip(sizes, sizes[1:]):
            layers += [nn.Linear(a, b), nn.ReLU()]
        return nn.Sequential(*layers[:-1])

    class Lstm(nn.Module):
        def __init__(self):
            super().__init__()
            self.memory = nn.LSTM(256, 512, 2, batch_first=True, dropout=0.25)
            self.last = nn.Sequential(nn.Dropout(0.25), nn.Linear(512, 2))

        def forward(self, x):
            return self.last(self.memory(x)[0][:, -1])

    class Transformer(nn.Module):
        def __init__(self):
            super().__init__()
            layer = nn.TransformerEncoderLayer(256, 4, 2048, dropout=0.1, batch_first=True)
            self.layers, self.last = nn.TransformerEncoder(layer, 2), nn.Linear(256, 28)

        def forward(self, x):
            return self.last(self.layers(x).mean(1))

    class Block1d(nn.Module):
        def __init__(self, inputs, outputs, stride, padding):
            super().__init__()
            self.short = nn.Sequential(nn.MaxPool1d(stride), nn.Conv1d(inputs, outputs, 15, padding="same", bias=False))
            self.first = nn.Sequential(
                nn.Conv1d(inputs, outputs, 15, padding="same", bias=False), nn.BatchNorm1d(outputs, affine=False), nn.ReLU(),
                nn.Dropout(0.2), nn.Conv1d(outputs, outputs, 15, stride, padding, bias=False))
            self.last = nn.Sequential(nn.BatchNorm1d(outputs, affine=False), nn.ReLU(), nn.Dropout(0.2))

        def forward(self, x, y):
            x = self.first(x)
            return self.last(x + self.short(y)), x

    class ResNet1d(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Sequential(
                nn.Conv1d(12, 12, 15, padding="same", bias=False), nn.BatchNorm1d(12, affine=False), nn.ReLU())
            sizes = zip((4, 4, 4, 5), (6, 5, 5, 5))
            self.blocks = nn.ModuleList(Block1d(12 * at + 12, 12 * at + 24, *size) for at, size in enumerate(sizes))
            self.last = nn.Linear(180, 2)

        def forward(self, x):
            x = y = self.stem(x)
            for block in self.blocks:
                x, y = block(x, y)
            return self.last(x.flatten(1))

    class Bag(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.last = nn.EmbeddingBag(100_000, 64), nn.Linear(64, 2)

        def forward(self, x):
            return self.last(self.words(x))

    return {
        "lstm": (Lstm, (256, 256), 2),
        "transformer": (Transformer, (128, 256), 28),
        "resnet1d": (ResNet1d, (12, 1000), 2),
        "bag": (Bag, (100,), 2),
        "mnist": (lambda: mlp(784, 16, 16, 10), (784,), 10),
        "moons": (lambda: mlp(2, 100, 100, 2), (2,), 2),
        "wide": (lambda: mlp(20, 2000, 2000, 5), (20,), 5),
        "cnn": (cnn, (3, 32, 32), 10),
        "resnet": (resnet, (3, 32, 32), 10),
        "resnet18": (resnet18, (3, 64, 64), 200),
        "preact": (preact, (3, 32, 32), 10),
    }


def worker(key, style):
    import resource

    import torch

    torch.set_num_threads(THREADS)
    torch.manual_seed(0)
    make, shape, classes = models()[key]
    batch = next(size for _, name, size, _, _ in WORKLOADS if name == key)
    model = make()
    x, y = torch.randn(batch, *shape), torch.randint(classes, (batch,))
    if key == "bag":
        x = torch.randint(100_000, (batch, 100))
    tuned = style == "tuned"
    if tuned:
        torch.set_flush_denormal(True)
        if len(shape) == 3:
            model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    kind = {"fused": True} if tuned else {}
    optimiser = {
        "preact": lambda: torch.optim.SGD(model.parameters(), 0.02, momentum=0.9, weight_decay=5e-4, **kind),
        "resnet18": lambda: torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4, **kind),
        "resnet": lambda: torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4, **kind),
        "wide": lambda: None,
    }.get(key, lambda: torch.optim.Adam(model.parameters(), 1e-3, **kind))()

    if key == "bag" and tuned:
        # Only the rows that a batch touches have a gradient and move.
        model.words.sparse = True
        rows = torch.optim.SparseAdam(model.words.parameters(), 1e-3)
        others = torch.optim.Adam(model.last.parameters(), 1e-3, **kind)

        class Both:
            def zero_grad(self):
                rows.zero_grad(), others.zero_grad()

            def step(self):
                rows.step(), others.step()

        optimiser = Both()

    def step():
        if optimiser:
            optimiser.zero_grad()
        else:
            model.zero_grad()
        losses = torch.nn.functional.cross_entropy(model(x), y, reduction="none")
        if key == "preact":
            # The second view, in a pass of its own.
            losses = losses + torch.nn.functional.cross_entropy(model(0.5 * x), y, reduction="none")
        losses.mean().backward()
        if optimiser:
            optimiser.step()

    for line in sys.stdin:
        if line.strip() == "end":
            print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, flush=True)
            return
        times = []
        for _ in range(int(line)):
            start = time.perf_counter()
            step()
            times.append(time.perf_counter() - start)
        print(statistics.median(times), flush=True)


def experiment(key, data):
    import gzip

    import numpy as np
    import torch
    from loss_adapted_plasticity import LossAdaptedPlasticity
    from torch import nn

    torch.set_num_threads(THREADS)
    rng = np.random.default_rng(0)
    data = Path(data)
    start = time.perf_counter()
    if key == "california":
        table = np.loadtxt(next(data.rglob("cal_housing.data")), delimiter=",", dtype=np.float32)
        # Per household, as scikit-learn has them.
        houses = table[:, 6]
        features = np.stack(
            [table[:, 7], table[:, 2], table[:, 3] / houses, table[:, 4] / houses, table[:, 5], table[:, 5] / houses,
             table[:, 1], table[:, 0]], 1)
        x, y = features, table[:, 8] / 1e5
        order = rng.permutation(len(x))
        train, test = order[:16512], order[16512:]
        sources, noisy, epochs, batch = rng.integers(10, size=len(x)), rng.choice(10, 4, replace=False), 200, 128
        wrong = np.isin(sources, noisy)
        y[wrong] = rng.uniform(y.min(), y.max(), wrong.sum())
        model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
        rate, decay, lap = 1e-3, 0, dict(history_length=25, leniency=0.8, warmup_iters=0)
        loss = lambda out, y: (out.flatten() - y) ** 2
        y = y.astype(np.float32)
    elif key == "fashion":
        def idx(name, skip):
            return np.frombuffer(gzip.open(next(data.rglob(name))).read(), np.uint8, offset=skip)

        root = "train-images-idx3-ubyte.gz"
        folder = next(path for path in data.rglob(root) if "fashion" in str(path).lower())
        data = folder.parent
        x = np.concatenate([idx(root, 16), idx("t10k-images-idx3-ubyte.gz", 16)]).reshape(-1, 784).astype(np.float32) / 255
        y = np.concatenate([idx("train-labels-idx1-ubyte.gz", 8), idx("t10k-labels-idx1-ubyte.gz", 8)]).astype(np.int64)
        order = rng.permutation(60000)
        train, test, epochs, batch = order[:45000], np.arange(60000, 70000), 40, 200
        sources = np.zeros(70000, np.int64)
        sources[train] = np.arange(45000) // 200 % 10
        for source in rng.choice(10, 6, replace=False):
            own = train[sources[train] == source]
            y[own] = rng.integers(10, size=10)[y[own]]
        model = nn.Sequential(
            nn.Linear(784, 16), nn.Dropout(0.2), nn.ReLU(), nn.Linear(16, 16), nn.Dropout(0.2), nn.ReLU(),
            nn.Linear(16, 10), nn.Softmax(1))
        rate, decay, lap = 1e-3, 0, dict(history_length=25, depression_strength=0.5, leniency=0.5, warmup_iters=100)
        loss = lambda out, y: nn.functional.cross_entropy(out, y, reduction="none")
    else:
        angle = np.linspace(0, np.pi, 5000)
        x = np.concatenate([np.stack([np.cos(angle), np.sin(angle)], 1), np.stack([1 - np.cos(angle), 0.5 - np.sin(angle)], 1)])
        x = (x + rng.normal(0, 0.1, x.shape)).astype(np.float32)
        y = np.repeat([0, 1], 5000)
        order = rng.permutation(10000)
        train, test, epochs, batch = order[:8000], order[8000:], 25, 128
        sources = rng.integers(5, size=10000)
        for source, level in enumerate([0.05, 0.25, 0.025, 1.0, 0.0]):
            own = train[sources[train] == source]
            own = own[: int(len(own) * level)]
            y[own] = 1 - y[own]
        model = nn.Sequential(nn.Linear(2, 200), nn.ReLU(), nn.Linear(200, 200), nn.ReLU(), nn.Linear(200, 2))
        rate, decay, lap = 1e-2, 1e-4, dict(history_length=50, leniency=1.0, warmup_iters=100)
        loss = lambda out, y: nn.functional.cross_entropy(out, y, reduction="none")
    x, y, sources = torch.from_numpy(x), torch.from_numpy(y), torch.from_numpy(sources)
    weigh = LossAdaptedPlasticity(**lap)
    optimiser = torch.optim.Adam(model.parameters(), rate, weight_decay=decay)
    repeats = 19 if key == "toy" else 1  # as many settings as the figure has
    for _ in range(repeats):
        if key == "toy":
            weigh = LossAdaptedPlasticity(**lap)
        for _ in range(epochs):
            model.train()
            order = torch.from_numpy(rng.permutation(train))
            for rows in order.split(batch):
                optimiser.zero_grad()
                weigh(loss(model(x[rows]), y[rows]), sources[rows]).mean().backward()
                optimiser.step()
            model.eval()
            with torch.no_grad():
                loss(model(x[test]), y[test]).mean().item()
    print(time.perf_counter() - start)


if __name__ == "__main__":
    if sys.argv[1] == "--worker":
        worker(*sys.argv[2:4])
    elif sys.argv[1] == "--experiment":
        experiment(*sys.argv[2:4])
    else:
        main()
