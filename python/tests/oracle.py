"""The rule in the slowest and plainest way: two passes over all histories, float64."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np


class Oracle:
    def __init__(self, history: int, warmup: int, strength: float, leniency: float) -> None:
        self.history, self.warmup, self.strength, self.leniency = history, warmup, strength, leniency
        self.step = 0
        self.windows: dict[Any, list[float]] = defaultdict(list)
        self.unreliability: dict[Any, int] = defaultdict(int)

    def __call__(self, losses: np.ndarray, sources: np.ndarray) -> float:
        """One step; the smallest distance of a source from anything that decides about it."""
        present = list(dict.fromkeys(sources.tolist()))
        for source in present:
            window = self.windows[source]
            window.append(losses[sources == source].astype(np.float64).mean())
            del window[: -self.history]
        complete = [source for source, window in self.windows.items() if len(window) == self.history]
        margin = np.inf
        moves = {}
        if self.step >= self.warmup and len(complete) >= 2:
            for source in present:
                if source in complete:
                    moves[source], distance = self.judge(source, [other for other in complete if other != source])
                    margin = min(margin, distance)
        for source, move in moves.items():
            self.unreliability[source] = max(0, self.unreliability[source] + move)
        self.step += 1
        return margin

    def judge(self, source: Any, others: list[Any]) -> tuple[int, float]:
        values = np.array([self.windows[other] for other in others])
        weights = 1 - np.tanh(0.005 * self.strength * np.array([self.unreliability[other] for other in others])) ** 2
        weights = np.repeat(weights[:, None], self.history, axis=1)
        mean = np.average(values, weights=weights)
        std = np.sqrt(np.average((values - mean) ** 2, weights=weights))
        if std <= 1e-8:
            return 0, np.inf if std == 0 else 0.0
        distance = np.mean(self.windows[source]) - (mean + self.leniency * std)
        # A float32 variance from running sums is lost where it is small beside the squared mean.
        trusted = std > 1e-2 * abs(mean)
        return (-1 if distance < 0 else 1), abs(distance) / (abs(mean) + std) if trusted else 0.0
