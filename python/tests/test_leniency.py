"""The leniency by how often clean sources may be accused."""

import numpy as np
import pytest

import lapwing


def test_the_rate_is_that_of_a_simulation():
    rng = np.random.default_rng(0)
    sources, history = 5, 4
    leniency = lapwing.leniency_for_false_alarm(0.1, sources=sources, history_length=history)
    # Histories of all sources, many times over: the source's mean, and mean and spread of the others.
    losses = rng.normal(size=(40_000, sources, history))
    own, others = losses[:, 0], losses[:, 1:].reshape(len(losses), -1)
    accused = own.mean(1) > others.mean(1) + leniency * others.std(1)
    assert abs(accused.mean() - 0.1) < 4 * np.sqrt(0.1 * 0.9 / len(losses))


def test_the_two_are_inverse():
    leniency = lapwing.leniency_for_false_alarm(0.01, sources=10)
    assert leniency == pytest.approx(0.49507237192804, rel=1e-12)
    assert lapwing.false_alarm_rate(leniency, sources=10) == pytest.approx(0.01, rel=1e-9)


@pytest.mark.parametrize(("probability", "sources"), [(0.7, 10), (0.0, 10), (float("nan"), 10), (0.1, 1)])
def test_what_no_leniency_gives_is_refused(probability, sources):
    with pytest.raises(ValueError, match="must be"):
        lapwing.leniency_for_false_alarm(probability, sources=sources)
