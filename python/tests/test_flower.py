"""`lapwing.flower`: sources that may not share their data. Strategies are Flower's, and the grid is a list of functions."""

import doctest
import importlib.util
import logging
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("flwr")
pytest.importorskip("sklearn")

from flwr.app import Array, ArrayRecord, ConfigRecord, MetricRecord, RecordDict

import lapwing
import lapwing.flower
from lapwing.flower import LapStrategy, report, weights

spec = importlib.util.spec_from_file_location("hospitals", Path(__file__).parents[1] / "examples/flower_hospitals.py")
hospitals = importlib.util.module_from_spec(spec)
spec.loader.exec_module(hospitals)
logging.getLogger("flwr").setLevel(logging.ERROR)

OPTIONS = {"fraction_evaluate": 0.0, "history_length": 2, "depression_strength": 40.0}


def says(value, loss, name, rows=10, said=None):
    """A client that always sends this model and reports this loss."""

    def train(message):
        if said is not None:
            said.append(message.content)
        turn = message.content["config"]["server-round"]
        losses = np.full(rows, loss + 0.01 * (turn % 3))
        return RecordDict(
            {
                "arrays": ArrayRecord({"w": Array(np.full(2, float(value)))}),
                "metrics": MetricRecord({"num-examples": rows}),
                "lapwing": report(losses, name, seed=turn),
            }
        )

    return train


def start(strategy, clients, rounds):
    first = ArrayRecord({"w": Array(np.zeros(2))})
    result = strategy.start(grid=hospitals.InProcess(clients), initial_arrays=first, num_rounds=rounds)
    return result.arrays["w"].numpy()


def test_examples_in_the_documentation():
    assert doctest.testmod(lapwing.flower).failed == 0


def test_models_are_averaged_by_rows_times_weight():
    strategy = LapStrategy(**OPTIONS)
    clients = [says(1, 0.1, "a", rows=10), says(3, 0.1, "b", rows=30), says(100, 5.0, "c", rows=20)]
    assert start(strategy, clients, 1)[0] == pytest.approx((10 + 90 + 2000) / 60)
    averaged = start(strategy, clients, 39)
    weight = strategy.lap.weight("c")
    assert weight < 0.01 and strategy.lap.weight("a") == strategy.lap.weight("b") == 1
    assert averaged[0] == pytest.approx((10 + 90 + 2000 * weight) / (40 + 20 * weight))
    assert "c" in lapwing.report(strategy.lap) and strategy.sources()["source"] == ["a", "b", "c"]


def test_the_order_of_arrival_does_not_matter():
    states = []
    for order in ([0, 1, 2], [2, 0, 1]):
        strategy = LapStrategy(**OPTIONS)
        clients = [says(1, 0.1, "a"), says(2, 0.3, "b"), says(3, 0.7, "c")]
        start(strategy, [clients[at] for at in order], 15)
        states.append(strategy.lap.state())
    assert states[0] == states[1]


def test_a_client_with_several_sources_is_told_their_weights_and_of_no_others():
    said = []

    def two(message):
        said.append(message.content)
        content = says(1, 0.1, "a")(message)
        turn = message.content["config"]["server-round"]
        content["lapwing"] = report([0.1 + 0.01 * (turn % 3)] * 6 + [5.0] * 2, ["a"] * 6 + ["bad"] * 2, seed=turn)
        return content

    strategy = LapStrategy(**OPTIONS)
    start(strategy, [two, says(1, 0.1, "b"), says(1, 0.1, "c")], 40)
    assert weights(said[0], ["a", "bad"]).tolist() == [1, 1]
    told = weights(said[-1], ["bad", "a", "nobody"])
    assert told[0] < 0.01 and told[1:].tolist() == [1, 1]
    assert said[-1]["lapwing"]["sources"] == ["a", "bad"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda content: content.pop("lapwing"), "no record 'lapwing'"),
        (lambda content: content.update({"arrays": ArrayRecord({"w": Array(np.array([np.nan, 1.0]))})}), "not finite"),
        (lambda content: content.update({"lapwing": ConfigRecord({"sources": ["x"]})}), "no sources, losses and rows"),
        (lambda content: content["lapwing"].update({"rows": [0]}), "without rows"),
        (lambda content: content["lapwing"].update({"losses": [0.1, 0.2]}), "one loss and one number"),
    ],
)
def test_a_reply_that_cannot_be_used_is_left_out_with_a_warning(change, problem, caplog):
    def broken(message):
        content = says(1000, 0.1, "x")(message)
        change(content)
        return content

    strategy = LapStrategy(**OPTIONS)
    with caplog.at_level(logging.WARNING, logger="lapwing"):
        averaged = start(strategy, [says(1, 0.1, "a"), broken, says(3, 0.1, "b")], 1)
    assert averaged[0] == 2 and strategy.sources()["source"] == ["a", "b"]
    assert problem in caplog.text


def test_a_loss_that_is_not_finite_condemns_nobody_else():
    strategy = LapStrategy(**OPTIONS)
    start(strategy, [says(1, 0.1, "a"), says(1, 0.1, "b"), says(1, float("nan"), "x")], 20)
    assert [strategy.lap.weight(name) for name in "ab"] == [1, 1]
    assert dict(zip(strategy.sources()["source"], strategy.sources()["nonfinite"]))["x"] == 20


def test_a_report_is_a_draw_that_can_be_repeated():
    losses = np.arange(100.0)
    one, same, other = (report(losses, "a", seed=seed) for seed in (1, 1, 2))
    assert one["losses"] == same["losses"] != other["losses"] and one["rows"] == [100]
    with pytest.raises(ValueError, match="3 losses came with 2 sources"):
        report([1.0, 2.0, 3.0], ["a", "b"])
    with pytest.raises(ValueError, match="rows is 0"):
        report([1.0], "a", rows=0)


@pytest.mark.parametrize("unlike", [None, 1.0])
def test_hospitals_with_wrong_labels_are_found_and_nobody_else_beside_averages_of_flower(unlike):
    strategies = hospitals.strategies()
    losses = {name: hospitals.run(strategy, 40, 0, unlike)[1] for name, strategy in strategies.items()}
    assert hospitals.lowered(strategies["LAP"]) == set(hospitals.WRONG)
    assert losses["LAP"] < 0.75 * losses["FedAvg"]
    # Where hospitals are unlike, medians and MultiKrum leave digits out that few of them have.
    assert unlike is None or losses["LAP"] == min(losses.values())
