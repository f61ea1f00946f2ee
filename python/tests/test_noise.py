"""`lapwing.NoiseRate`: noise rates over arrays."""

import copy
import doctest
import pickle

import numpy as np
import pytest

import lapwing
import lapwing._noise


class Oracle:
    """Noise rates as plainly as they can be written."""

    def __init__(self, classes, warmup=0, prior=0.1, strength=10.0, decay=0.98, cap=0.99):
        self.counts, self.warmup, self.step = np.ones(classes), warmup, 0
        self.prior, self.strength, self.decay, self.cap = prior, strength, decay, cap
        self.noise, self.rows = {}, {}

    def rate(self, source):
        if self.step < self.warmup:
            return self.prior
        noise, rows = self.noise.get(source, 0.0), self.rows.get(source, 0.0)
        return min((noise + self.prior * self.strength) / (rows + self.strength), self.cap)

    def __call__(self, probabilities, labels, sources):
        m = self.counts[labels] / self.counts.sum()
        e = np.array([self.rate(source) for source in sources])
        r = e * m / (e * m + (1 - e) * probabilities)
        for source in set(sources):
            own = np.array([other == source for other in sources])
            self.noise[source] = self.decay * self.noise.get(source, 0.0) + r[own].sum()
            self.rows[source] = self.decay * self.rows.get(source, 0.0) + own.sum()
        np.add.at(self.counts, labels, 1)
        self.step += 1
        return 1 - r


def batches(steps, classes=4, rows=20, sources=5, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        names = rng.integers(0, sources, rows)
        logits = rng.normal(size=(rows, classes)) * 2
        probabilities = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
        # Source 0 answers at random, the others what the network thinks.
        labels = np.where(names == 0, rng.integers(0, classes, rows), probabilities.argmax(1))
        yield probabilities, labels, names


def test_examples_in_the_documentation():
    assert doctest.testmod(lapwing._noise).failed == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weights_and_rates_are_those_of_the_oracle(dtype):
    noise, oracle = lapwing.NoiseRate(4, warmup=5), Oracle(4, warmup=5)
    for probabilities, labels, names in batches(200):
        probabilities = probabilities.astype(dtype)
        expected = oracle(probabilities[np.arange(len(labels)), labels].astype(float), labels, names.tolist())
        assert np.allclose(noise.weigh(probabilities, labels, names), expected, atol=1e-12)
        assert np.allclose([noise.rate(s) for s in range(5)], [oracle.rate(s) for s in range(5)], atol=1e-12)
    assert noise.rate(0) > 0.5 > 0.1 > noise.rate(1) and noise.rate("nobody") == 0.1
    assert np.allclose(noise.frequencies(), oracle.counts / oracle.counts.sum())


def test_probabilities_of_the_labels_alone_are_enough():
    one, other = lapwing.NoiseRate(4), lapwing.NoiseRate(4)
    for probabilities, labels, names in batches(20):
        own = probabilities[np.arange(len(labels)), labels]
        assert np.array_equal(one.weigh(probabilities, labels, names), other.weigh(own, labels, names))


def test_given_frequencies_stay():
    noise = lapwing.NoiseRate(2, frequencies=[30, 10])
    noise.weigh([0.5] * 8, [1] * 8, ["a"] * 8)
    assert noise.frequencies().tolist() == [0.75, 0.25]
    with pytest.raises(ValueError, match="3 frequencies for 2 classes"):
        lapwing.NoiseRate(2, frequencies=[1, 1, 1])


def test_a_probability_that_is_not_finite_weighs_nothing_and_is_counted():
    noise = lapwing.NoiseRate(2)
    assert noise.weigh([np.nan, 0.9], [0, 1], ["a", "b"]).tolist()[0] == 0
    table = noise.sources().to_dict()
    assert table["nonfinite"] == [1, 0] and table["rows"] == [1, 1] and table["source"] == ["a", "b"]


def test_state_is_json_and_goes_on_in_copies_pickles_and_loads():
    noise = lapwing.NoiseRate(4, frequencies=[4, 3, 2, 1])
    for probabilities, labels, names in batches(30):
        noise.weigh(probabilities, labels, [["ä", 7, "7.0", "b", "c"][name] for name in names])
    loaded = lapwing.NoiseRate(4)
    loaded.load(noise.state())
    for twin in (loaded, copy.deepcopy(noise), pickle.loads(pickle.dumps(noise))):
        assert twin.state() == noise.state() and twin.step == 30
        assert twin.sources().to_dict() == noise.sources().to_dict()
    assert b'"\xc3\xa4"' in noise.state()
    with pytest.raises(ValueError, match="another number of classes"):
        lapwing.NoiseRate(3).load(noise.state())


def test_what_cannot_be_is_refused_and_changes_nothing():
    noise = lapwing.NoiseRate(3)
    state = noise.state()
    for probabilities, labels, sources, match in [
        ([0.5], [3], ["a"], "label 3 is none of the 3 classes"),
        ([0.5], [-1], ["a"], "label -1 is negative"),
        ([0.5, 0.5], [1], ["a", "b"], "one label per row"),
        ([0.5], [1], ["a", "b"], "one source per loss"),
        (np.full((1, 2), 0.5), [1], ["a"], "must be one per row, or 3 per row"),
        (np.full((1, 3), 0.5), [7], ["a"], "label 7 is none"),
    ]:
        with pytest.raises(ValueError, match=match):
            noise.weigh(probabilities, labels, sources)
    with pytest.raises(TypeError, match="labels must be integers"):
        noise.weigh([0.5], [0.5], ["a"])
    assert noise.state() == state
    for parameters in ({"prior": 2.0}, {"decay": -1.0}, {"cap": 1.0}, {"prior_strength": 0.0}):
        with pytest.raises(ValueError, match=next(iter(parameters))):
            lapwing.NoiseRate(3, **parameters)


def test_jax_arrays_are_read():
    jnp = pytest.importorskip("jax.numpy")
    noise = lapwing.NoiseRate(2)
    weights = noise.weigh(jnp.array([0.9, 0.1]), jnp.array([0, 1]), jnp.array([3, 4]))
    assert weights.shape == (2,) and noise.step == 1
