"""LAP in Hugging Face's Trainer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers.trainer_utils import get_last_checkpoint

from lapwing._arrays import as_sources
from lapwing._writers import figures
from lapwing.torch import LossAdaptedPlasticity

__all__ = ["LapTrainer"]

_FILE = "lapwing.pt"
"""What is known of the sources, in the directory of a checkpoint."""


class LapTrainer(transformers.Trainer):
    """A ``Trainer`` that weighs the loss of each row by the reliability of its source.

    The dataset has one column more, which names the source of each row; the model does not see it. Evaluation and
    prediction are not weighed. The state of the rule is saved with every checkpoint and taken up by
    ``train(resume_from_checkpoint=...)``; weights per source are logged as everything else is.

    Parameters
    ----------
    *args, **kwargs
        Those of ``transformers.Trainer``.
    lap : LossAdaptedPlasticity, optional
        The rule; with a history of 25, a leniency of 0.8 and no warm-up where it is not given.
    source_column : str, default "source"
        The column of the dataset that names the source: integers or texts.
    row_losses : callable, optional
        From the outputs of the model and the labels to the loss of each row. Where it is not given, it is the
        cross-entropy of integer labels, or the squared error of others; labels of tokens are averaged over a row
        without those that are -100.

    Examples
    --------
    Two lines change::

        from lapwing.transformers import LapTrainer                      # instead of transformers.Trainer
        trainer = LapTrainer(model=model, args=args, train_dataset=data, source_column="hospital")
        trainer.train()
        trainer.lap.sources().to_pandas()
    """

    def __init__(
        self,
        *args: Any,
        lap: LossAdaptedPlasticity | None = None,
        source_column: str = "source",
        row_losses: Callable[[Any, torch.Tensor], torch.Tensor] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.lap = lap or LossAdaptedPlasticity(history_length=25, warmup_iters=0, leniency=0.8)
        self.source_column = source_column
        self._row_losses = row_losses or _row_losses
        collator: Any = self.data_collator
        self.data_collator: Any = _Collator(collator, source_column)
        # The loss is a mean over the batch, whatever loss the model itself has.
        self.model_accepts_loss_kwargs = False
        self.loss_is_scaled_for_ga = False
        self.add_callback(_Keeper(self.lap))

    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """The mean of the weighted losses in training, and of the losses elsewhere."""
        inputs = dict(inputs)
        sources = inputs.pop(self.source_column, None)
        if "labels" not in inputs:
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        outputs = model(**inputs)
        losses = self._row_losses(outputs, inputs["labels"])
        if model.training:
            if sources is None:
                raise ValueError(f"the dataset has no column {self.source_column!r} that says where its rows came from")
            losses = self.lap(losses, sources)
        loss = losses.mean()
        return (loss, outputs) if return_outputs else loss

    def train(self, resume_from_checkpoint: str | bool | None = None, **kwargs: Any) -> Any:
        """As ever; the rule goes on from the checkpoint, too."""
        path = resume_from_checkpoint
        if path is True:
            path = get_last_checkpoint(self.args.output_dir)
        if path and (Path(path) / _FILE).exists():
            self.lap.load_state_dict(torch.load(Path(path) / _FILE, weights_only=True))
        return super().train(resume_from_checkpoint=resume_from_checkpoint, **kwargs)

    def log(self, logs: dict[str, float], *args: Any, **kwargs: Any) -> None:
        """As ever, with the weight and the unreliability of each source beside the loss."""
        if "loss" in logs:
            logs = {**logs, **dict(figures(self.lap))}
        super().log(logs, *args, **kwargs)

    def _set_signature_columns_if_needed(self) -> None:
        super()._set_signature_columns_if_needed()
        if self._signature_columns is not None and self.source_column not in self._signature_columns:
            self._signature_columns.append(self.source_column)


class _Collator:
    """Takes the sources out of the way of a collator, which knows no texts, and puts them back."""

    def __init__(self, collator: Any, column: str) -> None:
        self._collator = collator
        self._column = column

    def __call__(self, rows: list[Any]) -> dict[str, Any]:
        sources = [row[self._column] for row in rows if self._column in row]
        batch = dict(self._collator([{key: row[key] for key in row if key != self._column} for row in rows]))
        if sources:
            batch[self._column] = _carried(as_sources(sources))
        return batch


def _carried(names: Any) -> Any:
    """Integers as a tensor, which travels like any other; texts as they are."""
    return torch.tensor(names) if all(type(name) is int for name in names) else list(names)


class _Keeper(transformers.TrainerCallback):
    """Saves the rule with every checkpoint."""

    def __init__(self, lap: LossAdaptedPlasticity) -> None:
        self._lap = lap

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        if state.is_world_process_zero and folder.is_dir():
            torch.save(self._lap.state_dict(), folder / _FILE)


def _row_losses(outputs: Any, labels: torch.Tensor) -> torch.Tensor:
    logits = outputs["logits"] if isinstance(outputs, dict) else outputs[1]
    if labels.is_floating_point():
        return ((logits.reshape(labels.shape) - labels) ** 2).reshape(len(labels), -1).mean(1)
    if logits.ndim == labels.ndim:
        raise ValueError("integer labels need logits with a dimension for classes; give row_losses=")
    entries = torch.nn.functional.cross_entropy(logits.movedim(-1, 1), labels, reduction="none", ignore_index=-100)
    if labels.ndim == 1:
        return entries
    counted = (labels != -100).reshape(len(labels), -1).sum(1)
    return entries.reshape(len(labels), -1).sum(1) / counted.clamp(min=1)
