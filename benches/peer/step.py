"""One step of the rule: ours against the authors' package, alternating, in one run.

Called by benches/peer/step.sh, which makes the virtual environment and builds our side.
"""

import statistics
import subprocess
import sys
import time

import torch
from loss_adapted_plasticity import LossAdaptedPlasticity

HISTORY, ROUNDS = 25, 5
# (sources, batch, steps per round: ours, the package's)
CASES = [(10, 512, 2000, 60), (100, 512, 2000, 20), (1_000, 512, 1000, 3), (10_000, 512, 500, 1)]


def filled(sources):
    """The package's object with all windows complete."""
    lap = LossAdaptedPlasticity(history_length=HISTORY, warmup_iters=0, leniency=1.0)
    ids = torch.arange(sources)
    for _ in range(HISTORY + 1):
        lap(torch.rand(sources), ids)
    return lap


def package(lap, sources, batch, steps):
    times = []
    for _ in range(steps):
        losses, ids = torch.rand(batch), torch.randint(0, sources, (batch,))
        start = time.perf_counter_ns()
        lap(losses, ids)
        times.append(time.perf_counter_ns() - start)
    return statistics.median(times)


def main():
    ours = subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def lapwing(sources, batch, steps):
        ours.stdin.write(f"{sources} {batch} {steps}\n")
        ours.stdin.flush()
        return float(ours.stdout.readline())

    torch.manual_seed(0)
    print(f"{'sources':>8} {'batch':>6} {'lapwing':>12} {'package':>14} {'ratio':>10}")
    for sources, batch, our_steps, their_steps in CASES:
        lap = filled(sources)
        pairs = [
            (lapwing(sources, batch, our_steps), package(lap, sources, batch, their_steps))
            for _ in range(ROUNDS)
        ]
        mine = statistics.median(pair[0] for pair in pairs) / 1e3
        theirs = statistics.median(pair[1] for pair in pairs) / 1e3
        print(f"{sources:>8} {batch:>6} {mine:>9.1f} µs {theirs:>11.0f} µs {theirs / mine:>9.0f}×", flush=True)
    ours.stdin.close()
    ours.wait()


if __name__ == "__main__":
    main()
