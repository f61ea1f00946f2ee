"""Loss Adapted Plasticity for Flower: sources that may not share their data."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.serverapp.strategy import FedAvg

from lapwing._arrays import as_losses, as_sources, pair
from lapwing.numpy import Lap

if TYPE_CHECKING:
    from lapwing._lapwing import Table

__all__ = ["LapStrategy", "report", "weights"]

RECORD = "lapwing"
"""The record in which clients and server speak of sources."""

_log = logging.getLogger("lapwing")


def report(losses: npt.ArrayLike, sources: Any, *, rows: int = 32, seed: int = 0) -> ConfigRecord:
    """What a client tells of its sources: put it into the reply as ``"lapwing"``.

    No row leaves the client. What does, for each source: its name, how many rows it has, and the mean loss of a few of them.
    A few, since means over all rows leave nothing to chance, and condemn clean sources that are a little harder.

    Parameters
    ----------
    losses : array of shape (B,)
        The loss of each row under the model *as it came from the server*, before the client trains it.
    sources : a text, or one entry per row
        The name of the client, if that is the source; else where each row came from. Names must stay the same from round
        to round, and be different for different sources.
    rows : int, default 32
        How many rows of each source are drawn, with replacement.
    seed : int, default 0
        Of the draw; the number of the round, say: ``msg.content["config"]["server-round"]``.

    Examples
    --------
    >>> from lapwing.flower import report
    >>> record = report([0.5, 0.5, 2.0], ["ward 1", "ward 1", "ward 2"])
    >>> record["sources"], record["losses"], record["rows"]
    (['ward 1', 'ward 2'], [0.5, 2.0], [2, 1])
    """
    if rows < 1:
        raise ValueError(f"rows is {rows}, but must be at least 1")
    values = as_losses(losses)
    names = [sources] * len(values) if isinstance(sources, str) else as_sources(sources)
    values = pair(values, names)
    if len(values) != len(names):
        raise ValueError(f"{len(values)} losses came with {len(names)} sources")
    own: dict[str, list[float]] = {}
    for name, loss in zip(names, values.tolist()):
        own.setdefault(str(name), []).append(loss)
    random = np.random.default_rng(seed)
    means = [float(np.mean(random.choice(held, rows))) for held in own.values()]
    return ConfigRecord({"sources": list(own), "losses": means, "rows": [len(held) for held in own.values()]})


def weights(content: RecordDict, sources: Any) -> npt.NDArray[np.float64]:
    """What each row weighs in the training of a client that holds several sources, by the message of the server: 1 until
    the server has judged.

    Parameters
    ----------
    content : RecordDict
        Of the message to train: ``msg.content``.
    sources : array or list, one entry per row
        Where each row came from.
    """
    said = content.get(RECORD, {})
    known: dict[Any, float] = dict(zip(said.get("sources", []), said.get("weights", [])))
    return np.array([known.get(str(name), 1.0) for name in as_sources(sources)])


class LapStrategy(FedAvg):
    """``FedAvg`` in which a model counts for its rows times the reliability of the source they came from.

    A round is a step of the rule: clients report (`report`) the loss of the global model on their own rows, and a source
    whose loss stays above that of the others loses weight. It is not told how many clients are bad, and gives a verdict on
    each. It finds bad data at honest clients. It does not find liars: a client that reports low losses and sends a
    poisoned model is believed. Sources that are unlike the others look like bad ones.

    A client that sends a report that is none, or a model that is not finite, is left out of the round, with a warning. One
    that stays away is not judged. Reports are taken in the order of the names of sources, whatever order they arrive in.

    Parameters
    ----------
    history_length : int, default 10
        How many rounds of a source are remembered. A source is judged once it has that many.
    leniency : float, default 1.5
        How many standard deviations above the others' mean loss a source may lie.
    depression_strength : float, default 20.0
        How fast weight falls: 20 halves it after 9 rounds above the others.
    **options
        Those of ``flwr.serverapp.strategy.FedAvg``.

    Examples
    --------
    The server changes one line, ``strategy = LapStrategy(fraction_train=1.0)``; the client adds its report::

        @app.train()
        def train(msg, context):
            model = load(msg.content["arrays"])
            losses = losses_of(model, rows)                       # before training
            ...
            content = RecordDict({
                "arrays": ArrayRecord(model.state_dict()),
                "metrics": MetricRecord({"num-examples": len(rows)}),
                "lapwing": report(losses, "Ward 7", seed=msg.content["config"]["server-round"]),
            })
            return Message(content=content, reply_to=msg)
    """

    def __init__(
        self,
        *,
        history_length: int = 10,
        leniency: float = 1.5,
        depression_strength: float = 20.0,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.lap = Lap(history_length=history_length, leniency=leniency, depression_strength=depression_strength)
        self._held: dict[int, list[str]] = {}

    def sources(self) -> Table:
        """Where every source stands; its ``rows`` are reports. ``lapwing.report(strategy.lap, "report.html")`` is the page."""
        return self.lap.sources()

    def configure_train(self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Any) -> Iterable[Message]:
        """As ever; a client is told the weights of its own sources, and of no others."""
        messages = list(super().configure_train(server_round, arrays, config, grid))
        for message in messages:
            held = self._held.get(message.metadata.dst_node_id, [])
            told = ConfigRecord({"sources": held, "weights": [self.lap.weight(name) for name in held]})
            message.content = RecordDict({**message.content, RECORD: told})
        return messages

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Makes a step of the rule, and averages by rows times weight."""
        replies = list(replies)
        usable = {}
        for reply in replies:
            if not reply.has_error():
                node = reply.metadata.src_node_id
                try:
                    usable[node] = _read(reply.content)
                except ValueError as problem:
                    _log.warning("round %d: the reply of node %d is left out: %s", server_round, node, problem)
        # Sums of a source that several clients hold; sorted, so that the order of arrival does not matter.
        sums: dict[str, list[tuple[float, int]]] = {}
        for said in usable.values():
            for name, loss, rows in said:
                sums.setdefault(name, []).append((loss, rows))
        names = sorted(sums)
        means = [math.fsum(loss * rows for loss, rows in sums[n]) / sum(rows for _, rows in sums[n]) for n in names]
        self.lap.weigh(means, names)
        averaged = []
        for reply in replies:
            node = reply.metadata.src_node_id
            if reply.has_error():
                averaged.append(reply)
            elif node in usable:
                own = usable[node]
                self._held[node] = [name for name, _, _ in own]
                share = sum(self.lap.weight(name) * rows for name, _, rows in own) / sum(rows for _, _, rows in own)
                _scale(reply.content, self.weighted_by_key, share)
                averaged.append(reply)
        averaged.sort(key=lambda reply: reply.metadata.src_node_id)
        return super().aggregate_train(server_round, averaged)


def _read(content: RecordDict) -> list[tuple[str, float, int]]:
    """Source, loss and rows, from a reply that may hold anything."""
    said = content.get(RECORD)
    if said is None:
        raise ValueError("it has no record 'lapwing', which lapwing.flower.report makes")
    names, losses, rows = (said.get(key) for key in ("sources", "losses", "rows"))
    if not (isinstance(names, list) and isinstance(losses, list) and isinstance(rows, list)):
        raise ValueError("its report has no sources, losses and rows")
    if not names or not len(names) == len(losses) == len(rows) or len(set(names)) < len(names):
        raise ValueError("its report must have one loss and one number of rows for each of its sources")
    if not all(isinstance(name, str) for name in names):
        raise ValueError("its report must name sources by texts")
    if not all(isinstance(count, int) and 0 < count < 1 << 40 for count in rows):
        raise ValueError("its report has a source without rows")
    if not all(np.isfinite(array.numpy()).all() for record in content.array_records.values() for array in record.values()):
        raise ValueError("its model is not finite")
    return list(zip(names, (float(loss) for loss in losses), rows))


def _scale(content: RecordDict, key: str, share: float) -> None:
    """Takes from the number of rows what unreliable sources hold."""
    for record in content.metric_records.values():
        if isinstance(record.get(key), (int, float)):
            record[key] = float(record[key]) * share
