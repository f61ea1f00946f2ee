"""From anything that looks like an array to the arrays that the rule reads."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def as_array(values: Any) -> npt.NDArray[Any]:
    """A NumPy array, without a copy where there need not be one."""
    if isinstance(values, np.ndarray):
        return values
    if hasattr(values, "detach"):  # PyTorch refuses arrays of tensors that have a gradient or live on a GPU.
        values = values.detach().cpu()
        if values.dtype.is_floating_point and values.dtype.itemsize < 4:
            values = values.float()
    return np.asarray(values)


def as_losses(losses: Any) -> npt.NDArray[Any]:
    """Contiguous float32 or float64."""
    array = as_array(losses)
    if array.dtype not in (np.float32, np.float64):
        small = array.dtype.kind in "fV" and array.dtype.itemsize < 4  # float16, bfloat16
        try:
            array = array.astype(np.float32 if small else np.float64)
        except (TypeError, ValueError):
            raise TypeError(f"losses must be numbers, not {array.dtype}") from None
    return np.asarray(array, order="C")


def as_sources(sources: Any) -> npt.NDArray[np.int64] | list[Any]:
    """One-dimensional int64 where sources are integers, else a list of names."""
    if isinstance(sources, str):
        raise TypeError("sources must be one per sample, not a single text")
    if isinstance(sources, (list, tuple)):
        return _names(sources)
    array = as_array(sources)
    kind = array.dtype.kind
    if kind == "i" or (kind == "u" and array.dtype.itemsize < 8):
        return np.ascontiguousarray(array.reshape(-1), dtype=np.int64)
    return _names(array.reshape(-1).tolist())


def _names(items: list[Any] | tuple[Any, ...]) -> list[Any]:
    """Plain values, so that a tensor's or an array's element has the name of its value."""
    return [
        item if isinstance(item, (str, int, float)) or not hasattr(item, "item") else item.item()
        for item in items
    ]


def pair(losses: npt.NDArray[Any], sources: npt.NDArray[np.int64] | list[Any]) -> npt.NDArray[Any]:
    """One loss per source: losses of further dimensions are samples of their own where there are as many sources, and
    otherwise averaged over all but the first dimension."""
    if losses.ndim == 0:
        raise ValueError(
            "losses is a single number: the rule needs one loss per sample, such as reduction='none' gives"
        )
    if losses.ndim == 1 or losses.size == len(sources):
        return losses.reshape(-1)
    return losses.reshape(losses.shape[0], -1).mean(axis=1, dtype=np.float64)
