"""Noise rates as a PyTorch module."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist

from lapwing._lapwing import Noise, Table
from lapwing._module import SourceModule, names_of
from lapwing._noise import NoiseRate, as_labels

__all__ = ["NoiseRateLoss"]

_HEADER = 8
"""Bytes in front of what a worker says of its sources, before what it says of its labels."""


class NoiseRateLoss(SourceModule):
    """Cross-entropy in which each row counts for the probability that its label is right, by the noise rate of the
    source it came from: `lapwing.NoiseRate` says how.

    Parameters
    ----------
    classes, warmup, prior, prior_strength, decay, cap, frequencies
        Those of `lapwing.NoiseRate`.
    distributed : bool, default True
        Whether workers share what they see when ``torch.distributed`` is initialised: every rank then ends in the same
        state, at the cost of one small collective per call. Every rank must call the module once per step.
    process_group : default None
        The workers that share; None for all of them.

    Examples
    --------
    >>> import torch
    >>> from lapwing import NoiseRateLoss
    >>> criterion = NoiseRateLoss(classes=3, warmup=300)
    >>> logits = torch.randn(4, 3, requires_grad=True)
    >>> loss = criterion(logits, torch.tensor([0, 2, 1, 1]), ["ward 1", "ward 2", "ward 1", "ward 3"])
    >>> loss.mean().backward()
    >>> criterion.source_noise_rate_
    {'ward 1': 0.1, 'ward 2': 0.1, 'ward 3': 0.1}
    """

    _rule: Noise

    def __init__(
        self,
        classes: int,
        warmup: int = 0,
        prior: float = 0.1,
        prior_strength: float = 10.0,
        *,
        decay: float = 0.98,
        cap: float = 0.99,
        frequencies: npt.ArrayLike | None = None,
        distributed: bool = True,
        process_group: dist.ProcessGroup | None = None,
    ) -> None:
        super().__init__(distributed, process_group)
        noise = NoiseRate(classes, warmup, prior, prior_strength, decay=decay, cap=cap, frequencies=frequencies)
        self._settings = noise._parameters
        self._rule = noise._rule

    def forward(
        self,
        logits: torch.Tensor,
        labels: torch.Tensor,
        sources: Any,
        writer: Any = None,
        writer_prefix: str | None = None,
    ) -> torch.Tensor:
        """One step: the cross-entropy of each row, weighted by what was known before; then learns from the batch.

        Parameters
        ----------
        logits : tensor of shape (B, classes), floating point
            The network's outputs before softmax.
        labels : tensor of shape (B,), integers
            The label that each row was given.
        sources : tensor, array or list, one entry per row
            Where each row came from: integers or texts; 5 and "5" are the same source.
        writer : optional
            Anything with ``add_scalar(tag, value, step)``, such as a SummaryWriter of TensorBoard: is told the noise
            rate of each source of the batch.
        writer_prefix : str, optional
            Goes before the tags, with a slash.

        Returns
        -------
        tensor of shape (B,), of the type and device of ``logits``
            Its mean is what to train on. The gradient flows through the losses and not through the weights. Where a
            loss is not finite the result and its gradient are 0.
        """
        classes = self._settings["classes"]
        if not logits.is_floating_point():
            raise TypeError(f"logits must be floating point, not {logits.dtype}")
        if logits.ndim != 2 or logits.shape[1] != classes:
            raise ValueError(f"logits have shape {tuple(logits.shape)}, but must have {classes} classes in (B, {classes})")
        given = as_labels(labels)
        if len(given) != len(logits):
            raise ValueError(f"{len(logits)} rows of logits came with {len(given)} labels")
        known = (given >= 0) & (given < classes)
        if not known.all():
            raise ValueError(f"label {given[~known][0]} is none of the {classes} classes, which count from 0")
        target = torch.from_numpy(given).to(logits.device)
        losses = torch.nn.functional.cross_entropy(logits, target, reduction="none")
        seen = losses.detach().cpu().double().numpy()
        weights = self._weigh(np.exp(-seen), given, names_of(sources), losses.device)
        if not np.isfinite(seen).all():
            finite = torch.isfinite(losses.detach())
            # Once more without such rows: as 0 * nan is nan, their gradient would be.
            logits = logits.masked_fill(~finite.unsqueeze(1), 0.0)
            losses = torch.nn.functional.cross_entropy(logits, target, reduction="none").masked_fill(~finite, 0.0)
        if writer is not None:
            start = "" if writer_prefix is None else f"{writer_prefix}/"
            for source, rate in self._rule.present():
                writer.add_scalar(f"{start}noise_rate/source_{source}", rate, self._rule.step - 1)
        return losses * torch.from_numpy(weights).to(losses.device, losses.dtype)

    @property
    def source_noise_rate_(self) -> dict[str, float]:
        """The share of the labels of each source that is noise, by name in the order of texts: "10" comes before "2"."""
        return self._by_name("noise_rate")

    @property
    def source_weight_(self) -> dict[str, float]:
        """What is left: the share of the labels of each source that is right."""
        return self._by_name("weight")

    def sources(self) -> Table:
        """Where every source stands, a row for each in order of first appearance: noise rate, weight and counts.
        ``.to_pandas()``, ``.to_polars()``, or a column by its name."""
        return self._rule.sources()

    def extra_repr(self) -> str:
        """The parameters, for ``print(criterion)``."""
        return ", ".join(f"{name}={value}" for name, value in self._settings.items())

    def _weigh(
        self,
        probabilities: npt.NDArray[np.float64],
        labels: npt.NDArray[np.int64],
        names: npt.NDArray[np.int64] | list[Any],
        device: torch.device,
    ) -> npt.NDArray[np.float64]:
        if not self._shares():
            return self._rule.weigh(probabilities, labels, names)
        of_sources, of_labels = self._rule.start(probabilities, labels, names)
        part = len(of_sources).to_bytes(_HEADER, "little") + of_sources + of_labels
        parts = self._exchange(part, device)
        ends = [_HEADER + int.from_bytes(part[:_HEADER], "little") for part in parts]
        return self._rule.finish(
            [part[_HEADER:end] for part, end in zip(parts, ends)], [part[end:] for part, end in zip(parts, ends)]
        )
