"""Real processes that share what they see, over gloo."""

import multiprocessing
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
dist = pytest.importorskip("torch.distributed")
if not dist.is_available() or not dist.is_gloo_available():
    pytest.skip("PyTorch without gloo", allow_module_level=True)

import torch.multiprocessing as processes
from lapwing import LossAdaptedPlasticity, NoiseRateLoss

# PyTorch is imported once, by the process that all others are forked from.
multiprocessing.set_forkserver_preload(["torch", "torch.distributed", "numpy"])


def run(function, workers, place):
    processes.start_processes(function, (workers, str(place)), nprocs=workers, start_method="forkserver")


STEPS = 60
PARAMETERS = dict(history_length=4, warmup_iters=3, leniency=0.5, depression_strength=5.0)


def batch(step):
    """The global batch: texts and numbers, a NaN, sources that come late, and once more than a message holds."""
    rng = np.random.default_rng(step)
    size = 400 if step == 30 else int(rng.integers(6, 20))
    ids = rng.integers(0, 300 if step == 30 else 5 + step // 20, size)
    losses = rng.uniform(0.2, 1.0, size) + (ids == 2) + 2.0 * (ids == 6)
    if step % 10 == 7:
        losses[0] = np.nan
    return losses, [str(i) if i % 2 else f"ward {i}" for i in ids]


def share(size, rank, workers):
    """Uneven parts; the first rank gets nothing in the smallest batches."""
    cuts = [0] + [size * (r + 1) ** 2 // workers**2 for r in range(workers)]
    if size < 9:
        cuts[1] = 0
    return slice(cuts[rank], cuts[rank + 1])


def start(rank, workers, place):
    dist.init_process_group("gloo", init_method=f"file://{place}/meeting", rank=rank, world_size=workers)
    torch.set_num_threads(1)


def train(rank, workers, place):
    start(rank, workers, place)
    collectives = 0
    gather = dist.all_gather

    def counted(*arguments, **options):
        nonlocal collectives
        collectives += 1
        return gather(*arguments, **options)

    dist.all_gather = counted
    lap = LossAdaptedPlasticity(**PARAMETERS)
    weighted = []
    for step in range(STEPS):
        losses, sources = batch(step)
        mine = share(len(losses), rank, workers)
        if step == 40:  # a copy keeps going where its original was
            lap = pickle.loads(pickle.dumps(lap))
        weighted.append(lap(torch.tensor(losses[mine]), sources[mine]))
    result = {"state": lap.state_dict(), "weighted": weighted, "collectives": collectives}
    torch.save(result, f"{place}/{rank}.pt")
    dist.destroy_process_group()


@pytest.mark.parametrize("workers", [2, 3])
def test_every_rank_ends_in_the_state_of_one_process_with_the_whole_batch(workers, tmp_path):
    run(train, workers, tmp_path)
    alone = LossAdaptedPlasticity(**PARAMETERS)
    expected = [alone(torch.tensor(losses), sources) for losses, sources in map(batch, range(STEPS))]
    ranks = [torch.load(tmp_path / f"{rank}.pt", weights_only=True) for rank in range(workers)]
    state = alone.state_dict()["_extra_state"]
    for rank in ranks:
        assert rank["state"]["_extra_state"].equal(state)
        # One per step, and one more in the step in which messages had to grow.
        assert rank["collectives"] == STEPS + 1
    for step in range(STEPS):
        assert torch.cat([rank["weighted"][step] for rank in ranks]).equal(expected[step])
    assert alone.source_unreliability_["ward 2"] > 20


def answers(step):
    """The logits and labels of the global batch; source 2 answers at random."""
    losses, sources = batch(step)
    rng = np.random.default_rng(1000 + step)
    logits = torch.from_numpy(rng.normal(0, 3, (len(losses), 5)))
    random = torch.from_numpy(rng.integers(0, 5, len(losses)))
    labels = torch.where(torch.tensor([source == "ward 2" for source in sources]), random, logits.argmax(1))
    if step % 10 == 7:
        logits[0] = np.nan
    return logits, labels, sources


def learn_noise_rates(rank, workers, place):
    start(rank, workers, place)
    criterion = NoiseRateLoss(5, warmup=3)
    weighted = []
    for step in range(STEPS):
        logits, labels, sources = answers(step)
        mine = share(len(logits), rank, workers)
        if step == 40:
            criterion = pickle.loads(pickle.dumps(criterion))
        weighted.append(criterion(logits[mine], labels[mine], sources[mine]))
    torch.save({"state": criterion.state_dict(), "weighted": weighted}, f"{place}/{rank}.pt")
    dist.destroy_process_group()


@pytest.mark.parametrize("workers", [2, 3])
def test_noise_rates_of_every_rank_are_those_of_one_process_with_the_whole_batch(workers, tmp_path):
    run(learn_noise_rates, workers, tmp_path)
    alone = NoiseRateLoss(5, warmup=3)
    expected = [alone(*answers(step)) for step in range(STEPS)]
    ranks = [torch.load(tmp_path / f"{rank}.pt", weights_only=True) for rank in range(workers)]
    state = alone.state_dict()["_extra_state"]
    assert all(rank["state"]["_extra_state"].equal(state) for rank in ranks)
    for step in range(STEPS):
        assert torch.cat([rank["weighted"][step] for rank in ranks]).equal(expected[step])
    assert alone.source_noise_rate_["ward 2"] > 0.3 > alone.source_noise_rate_["ward 4"]


def train_in_parallel(rank, workers, place):
    start(rank, workers, place)
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05)
    lap = LossAdaptedPlasticity(history_length=5, warmup_iters=0, leniency=0.8)
    generator = torch.Generator().manual_seed(7)
    for _ in range(150):
        x = torch.randn(24, 3, generator=generator)
        sources = torch.arange(24) % 4
        y = torch.where(sources == 3, torch.randn(24, generator=generator) * 3, x.sum(1))
        mine = slice(rank * 24 // workers, (rank + 1) * 24 // workers)
        losses = (model(x[mine]).squeeze(1) - y[mine]) ** 2
        optimiser.zero_grad()
        lap(losses, sources[mine]).mean().backward()
        optimiser.step()
    torch.save({"lap": lap.state_dict(), "model": model.state_dict()}, f"{place}/{rank}.pt")
    dist.destroy_process_group()


def test_distributed_data_parallel_finds_the_bad_source(tmp_path):
    run(train_in_parallel, 2, tmp_path)
    ranks = [torch.load(tmp_path / f"{rank}.pt", weights_only=True) for rank in range(2)]
    assert ranks[0]["lap"]["_extra_state"].equal(ranks[1]["lap"]["_extra_state"])
    lap = LossAdaptedPlasticity(history_length=5)
    lap.load_state_dict(ranks[0]["lap"])
    unreliability = lap.source_unreliability_
    assert unreliability["3"] > 100 and max(unreliability[s] for s in "012") < 10
    assert torch.allclose(ranks[0]["model"]["module.weight"], torch.ones(1, 3), atol=0.2)


def test_the_example_under_torchrun_ends_in_one_state_on_all_processes():
    example = Path(__file__).parents[1] / "examples/torchrun_moons.py"
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", example]
    said = subprocess.run(command, capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    # Two processes may write on one line.
    found = sorted(re.findall(r"process (\d) of 2: state ([0-9a-f]+), as promised", said.stdout))
    assert [rank for rank, _ in found] == ["0", "1"], said.stdout
    assert len({state for _, state in found}) == 1, said.stdout


def fall_out_of_step(rank, workers, place):
    start(rank, workers, place)
    lap = LossAdaptedPlasticity()
    if rank == 0:
        apart = LossAdaptedPlasticity(distributed=False)
        apart(torch.rand(2), [0, 1])  # waits for nobody
        lap.load_state_dict(apart.state_dict())
    try:
        lap(torch.rand(2), [0, 1])
    except RuntimeError as error:
        print(error, file=open(f"{place}/{rank}.txt", "w"))
    dist.destroy_process_group()


def test_workers_out_of_step_are_told(tmp_path):
    run(fall_out_of_step, 2, tmp_path)
    assert "worker 1 is at step 0, but this one is at step 1" in (tmp_path / "0.txt").read_text()
    assert "worker 0 is at step 1, but this one is at step 0" in (tmp_path / "1.txt").read_text()


def test_bytes_that_are_no_message_are_refused():
    lap = LossAdaptedPlasticity()
    with pytest.raises(RuntimeError, match="without a start"):
        lap._rule.finish([b""])
    lap._rule.start(np.array([1.0]), ["a"])
    with pytest.raises(ValueError, match="worker 0 sent a message of version 255"):
        lap._rule.finish([b"\xff" * 9])
    assert lap.step_count == 0
    criterion = NoiseRateLoss(2)
    with pytest.raises(RuntimeError, match="without a start"):
        criterion._rule.finish([b""], [b""])
    of_sources, of_labels = criterion._rule.start(np.array([0.5]), np.array([1]), ["a"])
    with pytest.raises(ValueError, match="worker 1 sent a message of version 255"):
        criterion._rule.finish([of_sources, of_sources], [of_labels, b"\xff" * 9])
    assert criterion.step_count == 0
