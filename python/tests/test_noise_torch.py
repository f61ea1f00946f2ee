"""`lapwing.NoiseRateLoss`: noise rates as a PyTorch module."""

import copy
import doctest
import io
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import lapwing
import lapwing._noise_torch
from lapwing import NoiseRateLoss
from test_noise import batches
from test_torch import Writer


def taught(**parameters):
    """A module in which source 0 answers at random."""
    criterion = NoiseRateLoss(4, **parameters)
    for probabilities, labels, names in batches(60):
        criterion(torch.from_numpy(np.log(probabilities)), torch.from_numpy(labels), torch.from_numpy(names))
    return criterion


def test_examples_in_the_documentation():
    assert doctest.testmod(lapwing._noise_torch).failed == 0


@pytest.mark.parametrize("frequencies", [None, [4, 3, 2, 1]])
def test_it_is_the_cross_entropy_times_the_weights_of_the_arrays(frequencies):
    criterion = NoiseRateLoss(4, warmup=3, frequencies=frequencies)
    noise = lapwing.NoiseRate(4, warmup=3, frequencies=frequencies)
    for probabilities, labels, names in batches(40):
        logits = torch.from_numpy(np.log(probabilities) + 7)  # softmax knows no offset
        loss = criterion(logits, torch.from_numpy(labels), torch.from_numpy(names))
        weights = noise.weigh(probabilities, labels, names)
        plain = torch.nn.functional.cross_entropy(logits, torch.from_numpy(labels), reduction="none")
        assert np.allclose(loss, plain * torch.from_numpy(weights), rtol=1e-12, atol=0)
    rates = {str(source): noise.rate(source) for source in range(5)}
    assert criterion.source_noise_rate_ == pytest.approx(rates, rel=1e-12)
    assert rates["0"] > 0.3 > 0.1 > rates["1"]
    assert criterion.source_weight_ == pytest.approx({source: 1 - rate for source, rate in rates.items()})


def test_the_gradient_flows_through_the_losses_and_not_through_the_weights():
    criterion = taught()
    twin = copy.deepcopy(criterion)
    logits = torch.randn(3, 4, generator=torch.Generator().manual_seed(0), requires_grad=True)
    labels, sources = torch.tensor([0, 1, 2]), torch.tensor([0, 1, 2])
    criterion(logits, labels, sources).sum().backward()
    again = logits.detach().clone().requires_grad_()
    plain = torch.nn.functional.cross_entropy(again, labels, reduction="none")
    weights = twin(logits.detach(), labels, sources) / plain.detach()
    assert weights[0] < 0.7 < weights[1]
    (plain * weights).sum().backward()
    assert torch.allclose(logits.grad, again.grad)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_every_precision_comes_back_as_it_went_in(dtype):
    logits = torch.zeros(2, 4, dtype=dtype, requires_grad=True)
    loss = taught()(logits, torch.tensor([0, 1], dtype=torch.int32), ["0", "1"])
    assert loss.dtype == dtype and loss[0] < loss[1]
    loss.sum().backward()
    assert logits.grad.dtype == dtype and torch.isfinite(logits.grad).all()


@pytest.mark.parametrize("poison", [float("nan"), float("inf")])
def test_a_row_that_is_not_finite_is_silenced_and_harms_nobody_else(poison):
    criterion, calm = taught(), taught()
    logits = torch.tensor([[0.0, poison, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]], requires_grad=True)
    loss = criterion(logits, torch.tensor([0, 1]), [1, 2])
    loss.sum().backward()
    assert loss[0] == 0 and loss[1] > 0
    assert logits.grad[0].tolist() == [0, 0, 0, 0] and (logits.grad[1] != 0).all()
    alone = logits.detach()[1:].requires_grad_()
    calm(alone, torch.tensor([1]), [2]).sum().backward()
    assert torch.equal(alone.grad[0], logits.grad[1])
    assert criterion.sources()["nonfinite"].sum() == 1
    assert criterion.source_noise_rate_["2"] == calm.source_noise_rate_["2"]


def test_a_label_that_is_impossible_weighs_nothing():
    logits = torch.tensor([[0.0, float("-inf")]], requires_grad=True)
    loss = NoiseRateLoss(2)(logits, torch.tensor([1]), ["a"])
    loss.sum().backward()
    assert loss.tolist() == [0] and logits.grad.tolist() == [[0, 0]]


def test_a_state_dict_goes_on_to_the_last_bit():
    criterion, file = taught(), io.BytesIO()
    torch.save({"criterion": criterion.state_dict()}, file)
    file.seek(0)
    fresh = NoiseRateLoss(4)
    fresh(torch.zeros(1, 4), torch.tensor([3]), ["somebody else"])
    fresh.load_state_dict(torch.load(file, weights_only=True)["criterion"])
    twins = [criterion, fresh, copy.deepcopy(criterion), pickle.loads(pickle.dumps(criterion))]
    for probabilities, labels, names in batches(20, sources=7, seed=1):
        logits = torch.from_numpy(np.log(probabilities))
        results = [twin(logits, torch.from_numpy(labels), [f"{name}" for name in names]) for twin in twins]
        assert all(torch.equal(result, results[0]) for result in results)
    assert all(twin.state_dict()["_extra_state"].equal(criterion.state_dict()["_extra_state"]) for twin in twins)
    assert criterion.step_count == 80 and criterion.n_sources == 7
    with pytest.raises(ValueError, match="another number of classes"):
        NoiseRateLoss(3).load_state_dict(criterion.state_dict())


def test_a_writer_is_told_the_noise_rates_of_the_batch():
    criterion, writer = taught(), Writer()
    criterion(torch.zeros(3, 4), torch.tensor([0, 1, 2]), [3, 0, 3], writer=writer, writer_prefix="run")
    assert [(tag, step) for tag, _, step in writer.said] == [
        ("run/noise_rate/source_3", 60),
        ("run/noise_rate/source_0", 60),
    ]
    assert [value for _, value, _ in writer.said] == [criterion.source_noise_rate_[source] for source in "30"]


@pytest.mark.parametrize(
    ("logits", "labels", "sources", "message"),
    [
        (torch.zeros(2, 4), [0, 1], [1, 2], r"shape \(2, 4\), but must have 3 classes"),
        (torch.zeros(3), [0, 1, 2], [1, 2, 3], "must have 3 classes"),
        (torch.zeros(2, 3, dtype=torch.int64), [0, 1], [1, 2], "floating point"),
        (torch.zeros(2, 3), [0, 3], [1, 2], "label 3 is none of the 3 classes"),
        (torch.zeros(2, 3), [0, -100], [1, 2], "label -100 is none of the 3 classes"),
        (torch.zeros(2, 3), [0.5, 1.0], [1, 2], "labels must be integers"),
        (torch.zeros(2, 3), [0], [1, 2], "2 rows of logits came with 1 labels"),
        (torch.zeros(2, 3), [0, 1], [1], "one source per"),
    ],
)
def test_bad_batches_are_refused_with_a_reason_and_change_nothing(logits, labels, sources, message):
    criterion = NoiseRateLoss(3)
    with pytest.raises((TypeError, ValueError), match=message):
        criterion(logits, torch.tensor(labels), sources)
    assert criterion.step_count == criterion.n_sources == 0


def test_what_it_is_made_of_is_printed_and_checked():
    assert "classes=3" in repr(NoiseRateLoss(3))
    with pytest.raises(ValueError, match="prior"):
        NoiseRateLoss(3, prior=2.0)


def test_the_report_needs_verdicts_which_noise_rates_do_not_give():
    for result in (taught(), lapwing.NoiseRate(3)):
        with pytest.raises(TypeError, match="is neither a Replay"):
            lapwing.report(result)


def test_an_empty_batch_is_a_step():
    criterion = NoiseRateLoss(3)
    assert criterion(torch.empty(0, 3), torch.empty(0, dtype=torch.int64), []).shape == (0,)
    assert criterion.step_count == 1
