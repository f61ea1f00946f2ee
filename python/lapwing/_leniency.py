"""Choosing the leniency by how often clean sources may be accused."""

from __future__ import annotations

from lapwing import _lapwing


def false_alarm_rate(leniency: float, *, sources: int, history_length: int = 25) -> float:
    """The probability that a clean source is accused in a step.

    Exact if all sources are clean and weigh the same, batch means are independent and normal with one spread, and
    histories are complete: Student's t with ``(sources - 1) * history_length - 1`` degrees of freedom. In training, where
    losses fall while histories fill, clean sources are accused less often. A source that is merely harder is not covered.

    >>> round(false_alarm_rate(0.8, sources=10), 6)
    9.8e-05
    """
    return _lapwing.false_alarm_rate(leniency, sources=sources, history_length=history_length)


def leniency_for_false_alarm(probability: float, *, sources: int, history_length: int = 25) -> float:
    """The leniency at which a clean source is accused in this share of the steps: the inverse of `false_alarm_rate`.

    >>> round(leniency_for_false_alarm(0.01, sources=10), 3)
    0.495
    """
    return _lapwing.leniency_for_false_alarm(probability, sources=sources, history_length=history_length)
