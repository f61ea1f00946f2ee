"""Where the sources stand, told to whatever keeps the figures of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["MlflowWriter", "figures", "log_sources"]

_COLUMNS = ("weight", "unreliability", "noise_rate")


class Writer(Protocol):
    """Anything like a SummaryWriter of TensorBoard."""

    def add_scalar(self, tag: str, value: float, step: int) -> Any:
        """Takes a figure of a step."""


def figures(lap: Any) -> Iterator[tuple[str, float]]:
    """A tag and a value for the weight of each source, and for its unreliability or its noise rate."""
    table = lap.sources()
    for column in _COLUMNS:
        if column in table.column_names:
            for source, value in zip(table["source"], table[column].astype(float).tolist()):
                yield f"{column}/source_{source}", value


def log_sources(lap: Any, writer: Writer, step: int, prefix: str | None = None) -> None:
    """Tells a writer what every source weighs, and its unreliability or its noise rate: once per epoch, say.

    Parameters
    ----------
    lap : anything with ``sources()``
        `Lap`, `LossAdaptedPlasticity`, `NoiseRate`, `NoiseRateLoss`, or a callback for boosted trees.
    writer : anything with ``add_scalar(tag, value, step)``
        A SummaryWriter of TensorBoard, or `MlflowWriter`.
    step : int
        Of the run.
    prefix : str, optional
        Goes before the tags, with a slash.

    Examples
    --------
    >>> import lapwing
    >>> class Printer:
    ...     def add_scalar(self, tag, value, step):
    ...         print(step, tag, value)
    >>> lap = lapwing.Lap()
    >>> weights = lap.weigh([0.5, 0.7], ["ward 1", "ward 2"])
    >>> lapwing.log_sources(lap, Printer(), step=3)
    3 weight/source_ward 1 1.0
    3 weight/source_ward 2 1.0
    3 unreliability/source_ward 1 0.0
    3 unreliability/source_ward 2 0.0
    """
    start = "" if prefix is None else f"{prefix}/"
    for tag, value in figures(lap):
        writer.add_scalar(start + tag, value, step)


class MlflowWriter:
    """A writer that keeps figures as metrics of an MLflow run: for `log_sources` and the ``writer`` of a module.

    Parameters
    ----------
    client : optional
        What has ``log_metric(key, value, step=...)``; the module ``mlflow``, and so the active run, where it is not given.
    """

    def __init__(self, client: Any = None) -> None:
        if client is None:
            import mlflow

            client = mlflow
        self._client = client

    def add_scalar(self, tag: str, value: float, step: int) -> None:
        """Takes a figure of a step."""
        self._client.log_metric(_metric(tag), value, step=step)


def _metric(tag: str) -> str:
    """A name that MLflow takes, other for every tag: what it refuses becomes its number between underscores."""
    safe = "".join(c if c.isascii() and (c.isalnum() or c in "_-. /") else f"_{ord(c):x}_" for c in tag)
    # It reads names as paths.
    return "/".join(part if part.strip(". ") else f"_{part.encode().hex()}_" for part in safe.split("/"))
