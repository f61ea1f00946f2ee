"""A dataset that says where each of its samples came from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from lapwing._module import names_of

__all__ = ["SourceDataset"]


class SourceDataset(torch.utils.data.Dataset[Any]):
    """Adds the source to every sample of a dataset, so that a DataLoader carries it through shuffling and batches.

    Parameters
    ----------
    dataset : a dataset with a length
        Its samples may be tuples, dictionaries or anything else.
    sources : tensor, array or list, one entry per sample
        Where each sample came from: integers, or texts.
    key : str, default "source"
        The name of the source in samples that are dictionaries; in others it comes last.

    Examples
    --------
    >>> import torch
    >>> from lapwing.torch import SourceDataset
    >>> data = torch.utils.data.TensorDataset(torch.arange(4.0), torch.tensor([0, 1, 0, 1]))
    >>> loader = torch.utils.data.DataLoader(SourceDataset(data, ["ward 1", "ward 1", "ward 2", "ward 3"]), batch_size=2)
    >>> [sources for x, y, sources in loader]
    [('ward 1', 'ward 1'), ('ward 2', 'ward 3')]
    """

    def __init__(self, dataset: Any, sources: Any, key: str = "source") -> None:
        names = names_of(sources)
        self._names = names if isinstance(names, list) else names.tolist()
        if len(self._names) != len(dataset):
            raise ValueError(f"{len(dataset)} samples came with {len(self._names)} sources: there must be one for each")
        self._dataset = dataset
        self._key = key

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, index: Any) -> Any:
        sample, source = self._dataset[index], self._names[index]
        if isinstance(sample, Mapping):
            if self._key in sample:
                raise ValueError(f"samples have a {self._key!r} already: give another key")
            return {**sample, self._key: source}
        return (*sample, source) if isinstance(sample, (tuple, list)) else (sample, source)
