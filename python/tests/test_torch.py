"""`LossAdaptedPlasticity` as a PyTorch module."""

import copy
import inspect
import io
import pickle
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from lapwing import LossAdaptedPlasticity


def condemned(**parameters):
    """A module in which source 2 is unreliable."""
    lap = LossAdaptedPlasticity(history_length=3, warmup_iters=0, **parameters)
    for step in range(120):
        jitter = 0.02 * (step % 7)
        lap(torch.tensor([0.5 + jitter, 0.5 - jitter, 2.0]), torch.tensor([0, 1, 2]))
    return lap


def test_torch_is_imported_only_when_it_is_used():
    code = "import lapwing, sys; lapwing.Lap(); print([m for m in ('torch', 'sklearn', 'matplotlib') if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_arguments_and_defaults_are_those_of_the_package():
    package = pytest.importorskip("loss_adapted_plasticity")
    theirs = inspect.signature(package.LossAdaptedPlasticity).parameters
    ours = inspect.signature(LossAdaptedPlasticity).parameters
    positional = [name for name, p in ours.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert positional == list(theirs)
    assert [ours[name].default for name in positional] == [p.default for p in theirs.values()]
    forward = inspect.signature(package.LossAdaptedPlasticity.forward).parameters
    assert list(inspect.signature(LossAdaptedPlasticity.forward).parameters) == list(forward)


def test_parameters_can_be_read_and_not_set():
    lap = LossAdaptedPlasticity(7, 8, 0.5, 0.01, 1.5, "cpu")
    values = (lap.history_length, lap.warmup_iters, lap.depression_strength, lap.discrete_amount, lap.leniency)
    assert values == (7, 8, 0.5, 0.01, 1.5)
    assert lap.device == torch.device("cpu") and "history_length=7" in repr(lap)
    with pytest.raises(AttributeError):
        lap.leniency = 3.0


def test_the_gradient_flows_through_the_losses_and_not_through_the_weights():
    lap = condemned()
    losses = torch.tensor([0.5, 0.6, 2.0], requires_grad=True)
    weighted = lap(losses, torch.tensor([0, 1, 2]))
    weights = (weighted / losses).detach()
    assert weights[0] == 1 and weights[2] < 0.8
    weighted.sum().backward()
    assert torch.equal(losses.grad, weights)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_every_precision_comes_back_as_it_went_in(dtype):
    lap = condemned()
    losses = torch.tensor([0.5, 0.5, 2.0], dtype=dtype, requires_grad=True)
    weighted = lap(losses, torch.tensor([0, 1, 2]))
    assert weighted.dtype == dtype and 0 < weighted[2] < 1.6
    weighted.sum().backward()
    assert losses.grad.dtype == dtype


def test_half_precision_is_judged_like_the_same_numbers_in_double_precision():
    rng = np.random.default_rng(0)
    laps = [LossAdaptedPlasticity(3, 0, leniency=0.2) for _ in range(2)]
    for _ in range(50):
        losses = torch.from_numpy(rng.uniform(0, 2, 12)).bfloat16()
        ids = torch.from_numpy(rng.integers(0, 4, 12))
        laps[0](losses, ids)
        laps[1](losses.double(), ids)
    assert laps[0].source_unreliability_ == laps[1].source_unreliability_
    assert any(laps[0].source_unreliability_.values())


def test_further_dimensions_are_averaged_and_weighed_together():
    flat, deep = LossAdaptedPlasticity(3, 0), LossAdaptedPlasticity(3, 0)
    generator = torch.Generator().manual_seed(1)
    ids = torch.tensor([0, 1, 2, 0])
    for _ in range(40):
        losses = torch.rand(4, 2, 3, generator=generator) + ids.view(4, 1, 1)
        weighted = deep(losses, ids)
        expected = flat(losses.double().mean((1, 2)), ids)
        assert weighted.shape == losses.shape
        assert torch.allclose(weighted.mean((1, 2)), expected.float())
    assert deep.source_unreliability_ == flat.source_unreliability_ != {"0": 0, "1": 0, "2": 0}


def test_every_entry_may_have_its_own_source():
    lap = LossAdaptedPlasticity(1, 0)
    assert lap(torch.rand(4, 2), torch.arange(8).view(4, 2)).shape == (4, 2)
    assert lap.n_sources == 8
    assert lap(torch.rand(4, 1), torch.arange(4)).shape == (4, 1)


def test_strided_losses_and_sources_are_read_in_their_order():
    lap = LossAdaptedPlasticity(1, 0)
    losses = torch.arange(12, dtype=torch.float32).view(3, 4).t()[1]
    lap(losses, torch.arange(6)[::2])
    assert lap.sources()["mean_loss"].tolist() == losses.tolist()
    assert lap.sources()["source"] == ["0", "2", "4"]


@pytest.mark.parametrize(
    "sources",
    [
        torch.tensor([3, -1, 3]),
        torch.tensor([3, -1, 3], dtype=torch.int8),
        np.array([3, -1, 3]),
        np.array([3, -1, 3], dtype=np.int16),
        np.array(["3", "-1", "3"]),
        np.array([3, -1, 3], dtype=object),
        ["3", "-1", "3"],
        (3, -1, 3),
        [torch.tensor(3), np.int64(-1), "3"],
    ],
    ids=lambda sources: f"{type(sources).__name__}-{getattr(sources, 'dtype', '')}",
)
def test_a_number_and_its_text_are_one_source_however_it_comes(sources):
    lap = LossAdaptedPlasticity()
    lap(torch.tensor([1.0, 2.0, 3.0]), sources)
    assert lap.sources()["source"] == ["3", "-1"]
    assert lap.sources()["mean_loss"].tolist() == [2.0, 2.0]


def test_names_are_those_of_the_package():
    package = pytest.importorskip("loss_adapted_plasticity")
    for sources in [
        torch.tensor([5.0, 2.5, 1e20]),
        torch.tensor([True, False, True]),
        torch.tensor([10, 2, 1]),
        torch.tensor([2**63 - 1, -(2**63), -(2**63) + 1]),
    ]:
        ours, theirs = LossAdaptedPlasticity(), package.LossAdaptedPlasticity()
        ours(torch.rand(3), sources)
        theirs(torch.rand(3), sources)
        assert list(ours.source_unreliability_.items()) == list(theirs.source_unreliability_.items())


def test_texts_that_only_look_like_numbers_stay_apart():
    names = ["5", "05", "+5", "5.0", " 5", "-0", "0", "", "9223372036854775808", "-9223372036854775808", "٥", "ä"]
    lap = LossAdaptedPlasticity()
    lap(torch.ones(len(names)), names)
    assert lap.sources()["source"] == names
    assert lap.n_sources == len(names)


@pytest.mark.parametrize("poison", [float("nan"), float("inf"), float("-inf")])
def test_a_loss_that_is_not_finite_is_silenced_and_harms_nobody_else(poison):
    lap, calm = condemned(), condemned()
    losses = torch.tensor([0.5, poison, 2.0, 0.7], requires_grad=True)
    weighted = lap(losses, torch.tensor([0, 1, 2, 1]))
    assert weighted[1] == 0 and torch.isfinite(weighted).all()
    weighted.sum().backward()
    assert losses.grad[1] == 0 and torch.isfinite(losses.grad).all()
    calm(torch.tensor([0.5, 2.0, 0.7]), torch.tensor([0, 2, 1]))
    assert lap.source_unreliability_ == calm.source_unreliability_
    assert lap.sources()["nonfinite"].tolist() == [0, 1, 0]


def test_a_sample_with_one_bad_entry_is_silenced_as_a_whole():
    lap = LossAdaptedPlasticity()
    losses = torch.ones(2, 3)
    losses[1, 2] = float("nan")
    assert lap(losses, [0, 1]).tolist() == [[1, 1, 1], [0, 0, 0]]


def test_state_dict_loads_into_a_fresh_module_and_goes_on_to_the_last_bit():
    lap = condemned()
    file = io.BytesIO()
    torch.save({"lap": lap.state_dict()}, file)
    file.seek(0)
    fresh = LossAdaptedPlasticity(history_length=3, warmup_iters=0)
    fresh(torch.rand(2), ["somebody", "else"])
    assert str(fresh.load_state_dict(torch.load(file, weights_only=True)["lap"])) == "<All keys matched successfully>"
    twins = [lap, fresh, pickle.loads(pickle.dumps(lap)), copy.deepcopy(lap)]
    for step in range(60):
        losses = torch.rand(5, generator=torch.Generator().manual_seed(step))
        results = [twin(losses, ["0", "1", "2", "new", "2"]) for twin in twins]
        assert all(torch.equal(result, results[0]) for result in results)
    assert all(twin.state_dict()["_extra_state"].equal(lap.state_dict()["_extra_state"]) for twin in twins)
    assert lap.step_count == 180 and lap.n_sources == 4


def test_a_copy_is_independent():
    lap = condemned()
    before = copy.deepcopy(lap.source_unreliability_)
    copy.deepcopy(lap)(torch.tensor([9.0]), [0])
    assert lap.source_unreliability_ == before and lap.step_count == 120


def test_it_is_part_of_a_model():
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), condemned())
    other = torch.nn.Sequential(torch.nn.Linear(2, 2), LossAdaptedPlasticity(3, 0))
    other.load_state_dict(model.state_dict())
    assert other[1].source_unreliability_ == model[1].source_unreliability_
    assert len(list(model.parameters())) == 2


def test_a_state_that_does_not_fit_is_refused_and_changes_nothing():
    lap = condemned()
    other = LossAdaptedPlasticity(history_length=4)
    with pytest.raises(ValueError, match="length 3, not 4"):
        other.load_state_dict(lap.state_dict())
    with pytest.raises(ValueError, match="cannot be used"):
        other.set_extra_state(torch.tensor([1, 2, 3], dtype=torch.uint8))
    assert other.n_sources == 0


class Writer:
    def __init__(self):
        self.said = []

    def add_scalar(self, tag, value, step):
        self.said.append((tag, value, step))


def test_a_writer_is_told_what_the_packages_is_told():
    package = pytest.importorskip("loss_adapted_plasticity")
    ours, theirs = Writer(), Writer()
    laps = [LossAdaptedPlasticity(2, 0), package.LossAdaptedPlasticity(2, 0)]
    generator = torch.Generator().manual_seed(0)
    for step in range(12):
        losses, ids = torch.rand(6, generator=generator), torch.tensor([0, 1, 2, 0, 1, 2])
        for lap, writer in zip(laps, (ours, theirs)):
            lap(losses, ids, writer=writer, writer_prefix="run" if step % 2 else None)
    assert [(tag, step) for tag, _, step in ours.said] == [(tag, step) for tag, _, step in theirs.said]
    assert np.allclose([v for _, v, _ in ours.said], [v for _, v, _ in theirs.said], atol=1e-6)


@pytest.mark.parametrize(
    ("losses", "sources", "message"),
    [
        (torch.tensor(1.0), [1], "reduction='none'"),
        (torch.rand(3), [1, 2], "3 losses came with 2 sources"),
        (torch.rand(3, 2), [1, 2], "3 losses came with 2 sources"),
        (torch.tensor([1, 2]), [1, 2], "floating point"),
        (torch.rand(2), "ab", "one per sample"),
    ],
)
def test_bad_batches_are_refused_with_a_reason_and_change_nothing(losses, sources, message):
    lap = condemned()
    with pytest.raises((TypeError, ValueError), match=message):
        lap(losses, sources)
    assert lap.step_count == 120


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"history_length": 0}, "history_length is 0, but must be at least 1"),
        ({"leniency": -1}, "leniency"),
        ({"leniency": float("nan")}, "leniency"),
        ({"depression_strength": float("inf")}, "depression_strength"),
        ({"discrete_amount": -0.1}, "discrete_amount"),
        ({"ties": "coin"}, "'paper', 'package'"),
        ({"weighting": "linear"}, "'tanh-squared', 'exponential', 'cut'"),
        ({"reading": "tea leaves"}, "'mean', 'evidence'"),
    ],
)
def test_parameters_outside_their_range_are_refused_by_name(parameters, message):
    with pytest.raises(ValueError, match=message):
        LossAdaptedPlasticity(**parameters)


def test_an_empty_batch_is_a_step():
    lap = LossAdaptedPlasticity()
    assert lap(torch.empty(0), []).shape == (0,)
    assert lap.step_count == 1
