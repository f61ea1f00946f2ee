"""200 random traces, step by step beside the authors' package.

The package keeps running sums in float32. A trace ends where a source comes so close to the threshold, or the others'
spread is so small, that float32 decides; an oracle in float64 tells.
"""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
package = pytest.importorskip("loss_adapted_plasticity")

from lapwing import LossAdaptedPlasticity
from oracle import Oracle

TRACES, STEPS, SAFE = 200, 40, 1e-4


def trace(seed):
    """Parameters, and batches of losses and sources: some sources are worse, often absent or late."""
    rng = np.random.default_rng(seed)
    parameters = {
        "history_length": int(rng.integers(1, 12)),
        "warmup_iters": int(rng.integers(0, 20)),
        "depression_strength": float(rng.choice([0.25, 1.0, 4.0])),
        "discrete_amount": float(rng.choice([0.005, 0.01])),
        "leniency": float(rng.uniform(0, 1.5)),
    }
    sources = int(rng.integers(2, 9))
    level = rng.uniform(0.3, 1.5, sources)
    presence = rng.uniform(0.3, 1.0, sources) * rng.choice([1.0, 4.0], sources)
    start = rng.choice([0, 0, 10], sources)
    batches = []
    for step in range(STEPS):
        chances = presence * (start <= step)
        if chances.sum() == 0:
            chances = presence
        size = int(rng.integers(1, 24))
        ids = rng.choice(sources, size, p=chances / chances.sum())
        losses = level[ids] * np.exp(rng.normal(0, 0.4, size)) * (0.5 + 0.5 * np.exp(-step / 30))
        batches.append((losses.astype(np.float32), ids))
    return parameters, batches


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def test_unreliability_and_losses_are_those_of_the_package():
    compared = moved = 0
    for seed in range(TRACES):
        parameters, batches = trace(seed)
        ours, theirs = LossAdaptedPlasticity(**parameters), package.LossAdaptedPlasticity(**parameters)
        oracle = Oracle(
            parameters["history_length"],
            parameters["warmup_iters"],
            parameters["depression_strength"] * parameters["discrete_amount"] / 0.005,
            parameters["leniency"],
        )
        for step, (losses, ids) in enumerate(batches):
            if oracle(losses, ids) < SAFE:
                break
            weighted = ours(torch.from_numpy(losses), torch.from_numpy(ids))
            expected = theirs(torch.from_numpy(losses), torch.from_numpy(ids))
            where = f"trace {seed}, step {step}, {parameters}"
            assert ours.source_unreliability_ == theirs.source_unreliability_, where
            assert ours.source_unreliability_ == {str(s): oracle.unreliability[s] for s in oracle.windows}, where
            assert torch.allclose(weighted, expected, rtol=1e-6, atol=1e-6), where
            compared += 1
        moved += any(ours.source_unreliability_.values())
    assert compared > 0.75 * TRACES * STEPS, "too few steps were safe"
    assert moved > 0.5 * TRACES, "too few traces accuse anybody"
