"""LAP in Lightning: the weights of sources in the logger of a run, and a report at its end."""

from __future__ import annotations

import os
from typing import Any

import lightning.pytorch as pl

from lapwing._module import SourceModule
from lapwing._report import report
from lapwing._writers import figures
from lapwing.torch import LossAdaptedPlasticity

__all__ = ["LapCallback", "LapMixin"]


class LapMixin:
    """A LightningModule that weighs losses by their sources: put it before ``LightningModule`` among the bases, and call
    `weigh` in ``training_step``.

    The state of the rule is part of the module, so checkpoints have it; under several devices the statistics are those of
    the global batch. Give ``self.lap`` a `LossAdaptedPlasticity` of your own in ``__init__`` for other parameters.

    Examples
    --------
    >>> import lightning.pytorch as pl, torch
    >>> from lapwing.lightning import LapMixin
    >>> class Model(LapMixin, pl.LightningModule):                       # the first changed line
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.layer = torch.nn.Linear(3, 2)
    ...
    ...     def training_step(self, batch, index):
    ...         x, y, sources = batch
    ...         losses = torch.nn.functional.cross_entropy(self.layer(x), y, reduction="none")
    ...         return self.weigh(losses, sources)                       # the second
    >>> [name for name, _ in Model().named_children()]
    ['lap', 'layer']
    """

    lap: LossAdaptedPlasticity

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lap = LossAdaptedPlasticity(history_length=25, warmup_iters=0, leniency=0.8)

    def weigh(self, losses: Any, sources: Any) -> Any:
        """The mean of the weighted losses: what to return from ``training_step``."""
        return self.lap(losses, sources).mean()


class LapCallback(pl.Callback):
    """Logs the weight of each source at the end of every epoch, with whatever loggers the trainer has, and writes the
    report at the end of training.

    Parameters
    ----------
    report : path, optional
        Where to write the HTML report when training ends.

    The module that is trained must hold a `LossAdaptedPlasticity` (`LapMixin` does) or a `NoiseRateLoss`; the latter has
    no report.
    """

    def __init__(self, report: str | os.PathLike[str] | None = None) -> None:
        self._report = report

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Called by Lightning."""
        values = dict(figures(_found(pl_module)))
        for logger in trainer.loggers:
            logger.log_metrics(values, step=trainer.global_step)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Called by Lightning."""
        if self._report is not None and trainer.is_global_zero:
            report(_found(pl_module), self._report)


def _found(module: Any) -> SourceModule:
    for child in module.modules():
        if isinstance(child, SourceModule):
            return child
    raise ValueError("the module holds no LossAdaptedPlasticity and no NoiseRateLoss: LapMixin brings one")
