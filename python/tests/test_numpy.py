"""`lapwing.Lap` and `lapwing.numpy.weigh`."""

import copy
import doctest
import importlib
import pickle

import numpy as np
import pytest

import lapwing
import lapwing.numpy as lnp
from oracle import Oracle


@pytest.mark.parametrize("module", ["lapwing.numpy", "lapwing._replay", "lapwing.sklearn", "lapwing.torch"])
def test_examples_in_the_documentation(module):
    if module in ("lapwing.sklearn", "lapwing.torch"):
        pytest.importorskip(module.removeprefix("lapwing."))
    assert doctest.testmod(importlib.import_module(module)).failed == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_rule_is_that_of_the_oracle(dtype):
    rng = np.random.default_rng(3)
    lap, oracle = lapwing.Lap(4, 0.7, 2.0, 5), Oracle(4, 5, 2.0, 0.7)
    for _ in range(400):
        ids = rng.integers(0, 6, 20)
        losses = (rng.uniform(0.2, 1.0, 20) + 0.3 * (ids == 3)).astype(dtype)
        weights = lap.weigh(losses, ids)
        oracle(losses, ids)
        assert weights.dtype == dtype
        assert [lap.unreliability(s) for s in range(6)] == [oracle.unreliability[s] for s in range(6)]
        expected = [1 - np.tanh(0.01 * oracle.unreliability[s]) ** 2 for s in ids.tolist()]
        assert np.allclose(weights, expected, atol=1e-7)
    assert lap.unreliability(3) > 100 and lap.weight(3) < 0.5 and lap.weight("nobody") == 1


@pytest.mark.parametrize("dtype", [np.float16, np.int32, np.longdouble])
def test_other_numbers_are_converted(dtype):
    assert lapwing.Lap().weigh(np.array([1, 2], dtype), ["a", "b"]).tolist() == [1, 1]


def test_what_is_not_a_number_is_refused():
    with pytest.raises(TypeError, match="losses must be numbers"):
        lapwing.Lap().weigh(["much", "little"], ["a", "b"])


def test_weighted_losses_keep_shape_and_type_and_lose_what_is_not_finite():
    losses = np.ones((3, 2), np.float32)
    losses[1, 0] = np.nan
    weighted = lnp.weigh(lapwing.Lap(), losses, ["a", "b", "c"])
    assert weighted.dtype == np.float32
    assert weighted.tolist() == [[1, 1], [0, 0], [1, 1]]
    per_entry = lnp.weigh(lapwing.Lap(), losses, np.arange(6).reshape(3, 2))
    assert per_entry.tolist() == [[1, 1], [0, 1], [1, 1]]


def test_state_is_json_and_goes_on_in_copies_pickles_and_loads():
    lap = lapwing.Lap(2)
    for step in range(30):
        lap.weigh([0.1 * (step % 3), 0.5, 0.2], ["ä", 7, "7.0"])
    loaded = lapwing.Lap(2)
    loaded.load(lap.state())
    for twin in (loaded, copy.deepcopy(lap), pickle.loads(pickle.dumps(lap))):
        assert twin.state() == lap.state() and twin.sources().to_dict() == lap.sources().to_dict()
    prior = lapwing.Lap(9)
    prior.load(lap.state(), prior=True)
    assert prior.step == 0 and prior.unreliability(7) == lap.unreliability(7) > 0
    assert b'"\xc3\xa4"' in lap.state()


def test_weightings():
    for name, low in [("tanh-squared", 0.42), ("exponential", 0.37), ("cut", 0.0)]:
        lap = lapwing.Lap(1, weighting=name, depression_strength=2.0)
        for step in range(100):
            weights = lap.weigh([0.1 * (step % 3), 5.0], [0, 1])
        assert weights[0] == 1 and abs(weights[1] - low) < 0.02, name


def test_evidence_forgives_spikes():
    log = {"step": [], "source": [], "loss": []}
    laps = {reading: lapwing.Lap(5, reading=reading) for reading in ("mean", "evidence")}
    for step in range(60):
        losses = [0.2 + 0.1 * (step % 3), 9.0 if step % 5 == 0 else 0.05, 0.3]
        log["step"] += [step] * 3
        log["source"] += [0, 1, 2]
        log["loss"] += losses
        for lap in laps.values():
            lap.weigh(losses, [0, 1, 2])
    for reading, expected in [("mean", 56), ("evidence", 0)]:
        lap = laps[reading]
        assert lap.unreliability(1) == pickle.loads(pickle.dumps(lap)).unreliability(1) == expected
        assert f"reading={reading!r}" in repr(lap)
        replayed = lapwing.replay(log, history_length=5, reading=reading)
        assert replayed.sources["unreliability"].max() == expected
    twin = pickle.loads(pickle.dumps(laps["evidence"]))
    assert twin.weigh([0.2, 9.0, 0.3], [0, 1, 2]).tolist() == [1, 1, 1] and twin.unreliability(1) == 0
    # What was pickled before there was a choice has seven arguments.
    restore, arguments = laps["mean"]._rule.__reduce__()
    assert restore(*arguments[:7]).unreliability(1) == 56


def test_jax_arrays_are_read():
    jnp = pytest.importorskip("jax.numpy")
    for dtype in (jnp.float32, jnp.bfloat16, jnp.float16):
        lap = lapwing.Lap()
        weights = lap.weigh(jnp.array([0.5, 1.0, 2.0], dtype), jnp.array([0, 1, 1]))
        assert weights.dtype == np.float32 and weights.tolist() == [1, 1, 1]
        assert lap.sources()["mean_loss"].tolist() == [0.5, 1.5]


def test_torch_tensors_are_read():
    torch = pytest.importorskip("torch")
    for dtype in (torch.float64, torch.bfloat16):
        losses = torch.tensor([0.5, 1.0], dtype=dtype, requires_grad=True)
        assert lapwing.Lap().weigh(losses, torch.tensor([1, 2])).tolist() == [1, 1]
