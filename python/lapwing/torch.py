"""Loss Adapted Plasticity and noise rates as PyTorch modules."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist

from lapwing._dataset import SourceDataset
from lapwing._lapwing import Rule, Table
from lapwing._module import SourceModule, names_of
from lapwing._noise_torch import NoiseRateLoss
from lapwing.numpy import Reading, Ties, Weighting

__all__ = ["LossAdaptedPlasticity", "NoiseRateLoss", "SourceDataset"]


class LossAdaptedPlasticity(SourceModule):
    """Weighs the loss of each sample by the reliability of the source it came from.

    Arguments, defaults, attributes and results are those of the authors' package ``loss_adapted_plasticity``: changing
    the import line is all it takes. Its numerical faults are not reproduced: statistics are float64 and never drift,
    a loss that is not finite harms nobody else, weights never vanish all at once, and the state can be saved.

    Parameters
    ----------
    history_length : int, at least 1, default 50
        How many batch-mean losses of a source are remembered. A source is judged, and counts when others are judged,
        once it has that many.
    warmup_iters : int, at least 0, default 100
        How many calls pass before the first judgement.
    depression_strength : float, at least 0, default 1.0
        How fast weight falls as unreliability C rises: the weight is
        1 - tanh(discrete_amount * depression_strength * C)**2.
    discrete_amount : float, at least 0, default 0.005
        The step of the depression; only its product with ``depression_strength`` counts.
    leniency : float, at least 0, default 1.0
        How many standard deviations above the others' mean loss a source may lie. Infinity accuses nobody.
    device : default "cpu"
        Accepted for compatibility. Statistics are always kept on the CPU; losses may live anywhere, and the result
        lives where they do.
    ties : {"package", "paper"}, default "package"
        What happens to a source exactly on the threshold: "package" raises its unreliability, and leaves it alone where
        the others spread by at most 1e-8; "paper" lowers it.
    weighting : {"tanh-squared", "exponential", "cut"}, default "tanh-squared"
        The function from unreliability to weight: the paper's; exp(-discrete_amount * depression_strength * C); or 1
        until the paper's reaches one half, then 0.
    reading : {"mean", "evidence"}, default "mean"
        What a history is read as: the mean of its losses; or minus the logarithm of the mean of exp(-loss), an estimate
        of the model evidence, to which a spike is hardly anything.
    distributed : bool, default True
        Whether workers share what they see when ``torch.distributed`` is initialised: the statistics are then those of
        the global batch, and every rank ends in the same state, at the cost of one small collective per call. Every
        rank must call the module once per step.
    process_group : default None
        The workers that share; None for all of them.

    Examples
    --------
    >>> import torch
    >>> from lapwing import LossAdaptedPlasticity
    >>> lap = LossAdaptedPlasticity(history_length=25, leniency=0.8)
    >>> losses = torch.rand(4, requires_grad=True)           # criterion(..., reduction="none")
    >>> lap(losses, ["ward 1", "ward 2", "ward 1", "ward 3"]).mean().backward()
    >>> lap.source_unreliability_
    {'ward 1': 0.0, 'ward 2': 0.0, 'ward 3': 0.0}
    """

    _rule: Rule

    def __init__(
        self,
        history_length: int = 50,
        warmup_iters: int = 100,
        depression_strength: float = 1.0,
        discrete_amount: float = 0.005,
        leniency: float = 1.0,
        device: Any = "cpu",
        *,
        ties: Ties = "package",
        weighting: Weighting = "tanh-squared",
        reading: Reading = "mean",
        distributed: bool = True,
        process_group: dist.ProcessGroup | None = None,
    ) -> None:
        super().__init__(distributed, process_group)
        self._settings: dict[str, Any] = {
            "history_length": int(history_length),
            "warmup_iters": int(warmup_iters),
            "depression_strength": float(depression_strength),
            "discrete_amount": float(discrete_amount),
            "leniency": float(leniency),
            "device": torch.device(device),
        }
        self._rule = Rule(
            history_length=int(history_length),
            leniency=float(leniency),
            depression_strength=float(depression_strength),
            discrete_amount=float(discrete_amount),
            warmup=int(warmup_iters),
            ties=ties,
            weighting=weighting,
            reading=reading,
        )

    def forward(
        self,
        losses: torch.Tensor,
        sources: Any,
        writer: Any = None,
        writer_prefix: str | None = None,
    ) -> torch.Tensor:
        """One step: updates the sources of a batch and returns its losses, weighted.

        Parameters
        ----------
        losses : tensor of shape (B,) or (B, ...), floating point
            The loss of each sample, as ``reduction="none"`` gives it. Further dimensions are averaged to judge a
            source, unless there is a source for every entry.
        sources : tensor, array or list, one entry per sample
            Where each sample came from: integers or texts; 5 and "5" are the same source.
        writer : optional
            Anything with ``add_scalar(tag, value, step)``, such as a SummaryWriter of TensorBoard: is told the
            unreliability, the multiplier and the loss of each source of the batch.
        writer_prefix : str, optional
            Goes before the tags, with a slash.

        Returns
        -------
        tensor of the shape, type and device of ``losses``
            The gradient flows through the losses and not through the weights. Where a loss is not finite the result
            and its gradient are 0.
        """
        if not losses.is_floating_point():
            raise TypeError(f"losses must be floating point, not {losses.dtype}")
        names = names_of(sources)
        samples = _samples(losses, len(names))
        if self._shares():
            weights, finite = self._rule.finish(self._exchange(self._rule.start(samples, names), losses.device))
        else:
            weights, finite = self._rule.weigh(samples, names)
        multiplier = torch.from_numpy(weights)
        if losses.dtype != multiplier.dtype or not losses.is_cpu:
            multiplier = multiplier.to(losses.device, losses.dtype)
        if losses.ndim > 1:
            per_entry = multiplier.numel() == losses.numel()
            multiplier = multiplier.view(losses.shape if per_entry else (-1,) + (1,) * (losses.ndim - 1))
        if writer is not None:
            self._write(writer, writer_prefix)
        if not finite:
            losses = losses.masked_fill(multiplier == 0, 0.0)  # as 0 * nan is nan
        return losses * multiplier

    @property
    def history_length(self) -> int:
        """How many batch-mean losses of a source are remembered."""
        return self._settings["history_length"]

    @property
    def warmup_iters(self) -> int:
        """How many calls pass before the first judgement."""
        return self._settings["warmup_iters"]

    @property
    def depression_strength(self) -> float:
        """How fast weight falls as unreliability rises."""
        return self._settings["depression_strength"]

    @property
    def discrete_amount(self) -> float:
        """The step of the depression."""
        return self._settings["discrete_amount"]

    @property
    def leniency(self) -> float:
        """How many standard deviations above the others' mean loss a source may lie."""
        return self._settings["leniency"]

    @property
    def device(self) -> torch.device:
        """As given."""
        return self._settings["device"]

    @property
    def source_unreliability_(self) -> dict[str, float]:
        """The unreliability of each source, by name in the order of texts: "10" comes before "2"."""
        return self._by_name("unreliability")

    @property
    def source_weight_(self) -> dict[str, float]:
        """What samples of each source weigh now, by name in the order of texts."""
        return self._by_name("weight")

    def sources(self) -> Table:
        """Where every source stands, a row for each in order of first appearance: verdict, unreliability, weight, losses
        and counts. ``.to_pandas()``, ``.to_polars()``, or a column by its name."""
        return self._rule.sources()

    def extra_repr(self) -> str:
        """The parameters, for ``print(lap)``."""
        return ", ".join(f"{name}={value}" for name, value in self._settings.items() if name != "device")

    def _write(self, writer: Any, prefix: str | None) -> None:
        start = "" if prefix is None else f"{prefix}/"
        step = self._rule.step - 1
        for source, loss, unreliability, weight in self._rule.present():
            writer.add_scalar(f"{start}unreliability/source_{source}", float(unreliability), step)
            writer.add_scalar(f"{start}depression_multiplier/source_{source}", weight, step)
            if loss is not None:
                writer.add_scalar(f"{start}loss/source_{source}", loss, step)


def _samples(losses: torch.Tensor, sources: int) -> npt.NDArray[Any]:
    """One loss per source, on the CPU, as float32 or float64."""
    losses = losses.detach()
    if losses.ndim == 1 and losses.dtype is torch.float32 and losses.is_cpu and losses.is_contiguous():
        return losses.numpy()
    if losses.ndim != 1:
        if losses.ndim == 0:
            raise ValueError(
                "losses is a single number: the rule needs one loss per sample, such as reduction='none' gives"
            )
        if losses.numel() == sources:
            losses = losses.reshape(-1)
        else:
            double = losses.device.type != "mps"  # which has no float64
            losses = losses.reshape(losses.shape[0], -1).mean(1, dtype=torch.float64 if double else torch.float32)
    if losses.dtype not in (torch.float32, torch.float64):
        losses = losses.float()
    return losses.cpu().contiguous().numpy()
