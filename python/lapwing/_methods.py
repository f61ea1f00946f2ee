"""The methods that estimators can train with, as the trainer lists them."""

from __future__ import annotations

from typing import NamedTuple

from lapwing import _lapwing

__all__ = ["Method", "Parameter", "methods"]


class Parameter(NamedTuple):
    """A parameter of a method."""

    name: str
    about: str
    default: float | None
    range: str


class Method(NamedTuple):
    """A way to train on data from many sources."""

    name: str
    about: str
    classification_only: bool
    parameters: list[Parameter]


def methods() -> list[Method]:
    """The methods for ``LapClassifier(method=...)`` and their parameters, the default method first.

    >>> import lapwing
    >>> [method.name for method in lapwing.methods()][:2]
    ['lap', 'standard']
    """
    return [
        Method(name, about, classes, [Parameter(*parameter) for parameter in parameters])
        for name, about, classes, parameters in _lapwing.methods()
    ]
