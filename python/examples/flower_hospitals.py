"""Ten hospitals that may not share their data, four of which have wrong labels: LAP beside Flower's own averages.

    python flower_hospitals.py [ROUNDS [SEEDS [UNLIKE]]]

Handwritten digits and softmax regression; hospitals that are alike, and hospitals each of which has a mix of digits of its
own, drawn from Dirichlet's distribution with concentration UNLIKE (1; less is more unlike). Runs server and clients in one
process, without Ray: the strategies are the real ones, and only the network between them is not. MultiKrum is told how many
hospitals are bad; the others are not. Prints accuracy and log loss on clean digits and the verdicts of LAP, and checks what it
promises: the bad hospitals are found, and unless the others are more unlike than that, no clean one is accused.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any

os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")  # it is on by default

import flwr
import numpy as np
from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict
from flwr.serverapp.strategy import FedAvg, FedMedian, MultiKrum
from flwr.supercore.task_identity import TaskIdentity
from sklearn.datasets import load_digits

from lapwing.flower import LapStrategy, report

WRONG = {"ward 7": 0.5, "ward 8": 0.6, "ward 9": 0.8, "ward 10": 1.0}
NAMES = [f"ward {i}" for i in range(1, 11)]


class InProcess:
    """A grid whose nodes are functions."""

    def __init__(self, clients: list[Callable[[Message], RecordDict]]) -> None:
        self.clients = clients
        # What Flower's launcher would set.
        TaskIdentity.run_id = TaskIdentity.task_id = TaskIdentity.node_id = 1

    def get_node_ids(self) -> list[int]:
        return list(range(1, len(self.clients) + 1))

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> list[Message]:
        replies = []
        for message in messages:
            content = self.clients[message.metadata.dst_node_id - 1](message)
            replies.append(Message(content=content, reply_to=message))
        return replies


def softmax(w: np.ndarray, x: np.ndarray) -> np.ndarray:
    logits = x @ w
    values = np.exp(logits - logits.max(axis=1, keepdims=True))
    return values / values.sum(axis=1, keepdims=True)


def client(name: str, x: np.ndarray, y: np.ndarray) -> Callable[[Message], RecordDict]:
    def train(message: Message) -> RecordDict:
        w = message.content["arrays"]["w"].numpy()
        turn = int(message.content["config"]["server-round"])
        losses = -np.log(np.maximum(softmax(w, x)[np.arange(len(y)), y], 1e-12))
        for _ in range(5):
            w = w - 0.5 * x.T @ (softmax(w, x) - np.eye(10)[y]) / len(y)
        return RecordDict(
            {
                "arrays": ArrayRecord({"w": Array(w)}),
                "metrics": MetricRecord({"num-examples": len(y)}),
                "lapwing": report(losses, name, seed=turn),
            }
        )

    return train


def dealt(y: np.ndarray, unlike: float | None, random: np.random.Generator) -> list[np.ndarray]:
    """The rows of each hospital."""
    if unlike is None:
        return np.array_split(np.arange(len(y)), len(NAMES))
    owners = np.empty(len(y), dtype=int)
    for digit in range(10):
        own = y == digit
        owners[own] = random.choice(len(NAMES), own.sum(), p=random.dirichlet(np.full(len(NAMES), unlike)))
    return [np.flatnonzero(owners == hospital) for hospital in range(len(NAMES))]


def run(strategy: Any, rounds: int, seed: int, unlike: float | None = None) -> tuple[float, float]:
    """Accuracy and log loss on clean digits."""
    random = np.random.default_rng(seed)
    digits = load_digits()
    order = random.permutation(len(digits.target))
    x, y = np.column_stack([digits.data[order] / 16, np.ones(len(order))]), digits.target[order]
    held, answers, x, y = x[:400], y[:400], x[400:], y[400:]
    clients = []
    for name, rows in zip(NAMES, dealt(y, unlike, random)):
        lied = random.random(len(rows)) < WRONG.get(name, 0.0)
        labels = np.where(lied, (y[rows] + random.integers(1, 10, len(rows))) % 10, y[rows])
        clients.append(client(name, x[rows], labels))
    first = ArrayRecord({"w": Array(np.zeros((x.shape[1], 10)))})
    result = strategy.start(grid=InProcess(clients), initial_arrays=first, num_rounds=rounds)
    said = softmax(result.arrays["w"].numpy(), held)
    own = said[np.arange(len(answers)), answers]
    return float((said.argmax(1) == answers).mean()), float(-np.log(np.maximum(own, 1e-12)).mean())


def strategies() -> dict[str, Any]:
    """Flower's own, and ours."""
    options: dict[str, Any] = {"fraction_evaluate": 0.0}
    return {
        "FedAvg": FedAvg(**options),
        "FedMedian": FedMedian(**options),
        "MultiKrum, told 4": MultiKrum(num_malicious_nodes=4, num_nodes_to_select=6, **options),
        "LAP": LapStrategy(**options),
    }


def lowered(strategy: LapStrategy) -> set[str]:
    """Hospitals below half weight."""
    table = strategy.sources()
    return {name for name, weight in zip(table["source"], table["weight"]) if weight < 0.5}


def main() -> None:
    logging.getLogger("flwr").setLevel(logging.WARNING)
    arguments = sys.argv[1:] + ["60", "3", "1.0"][len(sys.argv) - 1 :]
    rounds, seeds = int(arguments[0]), int(arguments[1])
    print(f"Flower {flwr.__version__}, {rounds} rounds, mean of {seeds} seeds, on clean digits")
    for unlike in (None, float(arguments[2])):
        scores: dict[str, list[tuple[float, float]]] = {}
        found = []
        for seed in range(seeds):
            for name, strategy in strategies().items():
                scores.setdefault(name, []).append(run(strategy, rounds, seed, unlike))
                if isinstance(strategy, LapStrategy):
                    found.append(lowered(strategy))
        print("hospitals that are alike:" if unlike is None else f"hospitals with digits of their own ({unlike}):")
        means = {name: np.mean(values, axis=0) for name, values in scores.items()}
        for name, (accuracy, loss) in means.items():
            print(f"  {name:<18} accuracy {accuracy:.3f}  log loss {loss:.3f}")
        for seed, names in enumerate(found):
            print(f"  seed {seed}: below half weight are {', '.join(sorted(names, key=NAMES.index))}")
        assert all(names >= set(WRONG) for names in found), "the four should be found"
        assert (unlike or 1) < 1 or all(names == set(WRONG) for names in found), "nobody else should be accused"
        assert means["LAP"][0] > means["FedAvg"][0]
    print("as promised")


if __name__ == "__main__":
    main()
