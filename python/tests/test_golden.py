"""The torch module against traces of the authors' own runs and of their package."""

import re

import pytest

torch = pytest.importorskip("torch")

import golden
from lapwing import LossAdaptedPlasticity

TRACES = sorted(path.name.removesuffix(".csv.gz") for path in golden.DIRECTORY.glob("trace_*.csv.gz"))


def test_all_traces_are_there():
    assert len(TRACES) == 14


@pytest.mark.parametrize("name", TRACES)
def test_the_authors_own_runs_are_matched_at_every_step(name):
    history, strength, leniency = re.fullmatch(r"trace_H(.+)_d(.+)_l(.+)", name).groups()
    lap = LossAdaptedPlasticity(
        history_length=int(history), warmup_iters=100, depression_strength=float(strength), leniency=float(leniency)
    )
    rows = golden.read(name)
    sources = torch.arange(5)
    ones = torch.ones(5, dtype=torch.float64)
    for step, row in enumerate(rows):
        losses = torch.tensor([row[f"loss_{s}"] for s in range(5)], dtype=torch.float64)
        weighted = lap(losses, sources)
        assert list(lap.source_unreliability_.values()) == [row[f"C_{s}"] for s in range(5)], f"step {step}"
        multipliers = torch.tensor([row[f"m_{s}"] for s in range(5)], dtype=torch.float64)
        assert torch.allclose(weighted / losses, multipliers * ones, rtol=0, atol=2e-7), f"step {step}"
    assert len(rows) == 1575


def run(name, **parameters):
    """Our unreliability after each step of a trace of the package."""
    lap = LossAdaptedPlasticity(**parameters)
    width = len(golden.states(name)[0])
    for batch in golden.batches(name):
        losses = torch.tensor([row["loss"] for row in batch])
        sources = torch.tensor([int(row["source"]) for row in batch])
        weighted = lap(losses, sources)
        known = lap.source_unreliability_
        yield [known.get(str(s), 0.0) for s in range(width)], batch, weighted


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("partial", dict(history_length=5, warmup_iters=0, leniency=0.8)),
        ("late", dict(history_length=10, warmup_iters=30, depression_strength=2, leniency=0.5)),
        ("tie", dict(history_length=1, warmup_iters=0, leniency=0)),
    ],
)
def test_the_package_is_matched_where_it_is_right(name, parameters):
    theirs = golden.states(name)
    for step, (ours, batch, weighted) in enumerate(run(name, **parameters)):
        assert ours == theirs[step], f"step {step}"
        expected = torch.tensor([row["weighted_loss"] for row in batch])
        assert torch.allclose(weighted, expected, rtol=1e-6, atol=1e-6), f"step {step}"
    assert step == len(theirs) - 1


@pytest.mark.parametrize(
    ("name", "history", "expected"),
    [
        ("quirk_spike", 25, [0, 0, 0, 0]),  # a loss of 3000 condemns clean sources for ever
        ("quirk_underflow", 10, [0, 1991]),  # the last reliable source is condemned once the others weigh nothing
        ("quirk_nan", 3, [0, 10, 0]),  # one NaN poisons its whole batch
    ],
)
def test_the_faults_of_the_package_are_not_reproduced(name, history, expected):
    *_, (ours, _, _) = run(name, history_length=history, warmup_iters=0)
    assert ours == expected
    assert golden.states(name)[-1] != expected, "the fault is not in the trace"
