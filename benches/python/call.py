"""What one call costs on PyTorch CPU tensors: ours and the authors' package, alternating, in one process.

    python benches/python/call.py            # in an environment with lapwing-ml, torch and loss_adapted_plasticity

Every window is complete, the batch holds 512 samples and losses require a gradient. PyTorch has one thread, which is
faster than several for both at this size. Both take turns, and printed is the median of the calls of each one's best turn,
as other work on the machine only ever adds; the last column is the aim. Exits with 1 where it is missed.
"""

from __future__ import annotations

import statistics
import sys
import time

import torch
from loss_adapted_plasticity import LossAdaptedPlasticity as Package

from lapwing import LossAdaptedPlasticity

BATCH, HISTORY, TURNS = 512, 25, 9
# sources, calls per turn: ours, the package's; aim in microseconds
CASES = [(10, 2000, 60, 40.0), (100, 2000, 20, None), (1_000, 1000, 3, None), (10_000, 1000, 1, 120.0)]


def filled(kind: type, sources: int) -> torch.nn.Module:
    lap = kind(history_length=HISTORY, warmup_iters=0, leniency=1.0)
    ids = torch.arange(sources)
    for _ in range(HISTORY + 1):
        lap(torch.rand(sources), ids)
    return lap


def microseconds(lap: torch.nn.Module, sources: int, calls: int) -> float:
    times = []
    for _ in range(calls):
        losses = torch.rand(BATCH, requires_grad=True)
        ids = torch.randint(0, sources, (BATCH,))
        start = time.perf_counter_ns()
        lap(losses, ids)
        times.append((time.perf_counter_ns() - start) / 1e3)
    return statistics.median(times)


def main() -> int:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    missed = 0
    print(f"{'sources':>8} {'lapwing':>12} {'package':>14} {'ratio':>8} {'aim':>10}")
    for sources, our_calls, their_calls, aim in CASES:
        ours, theirs = filled(LossAdaptedPlasticity, sources), filled(Package, sources)
        turns = [
            (microseconds(ours, sources, our_calls), microseconds(theirs, sources, their_calls))
            for _ in range(TURNS)
        ]
        a, b = (min(times) for times in zip(*turns))
        text = "" if aim is None else f"{aim:.0f} µs"
        print(f"{sources:>8} {a:>9.1f} µs {b:>11.0f} µs {b / a:>7.0f}× {text:>10}", flush=True)
        missed += aim is not None and a > aim
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
