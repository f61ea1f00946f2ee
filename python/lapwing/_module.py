"""What the PyTorch modules of this package share: state, copies, and workers that tell each other what they saw."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist

from lapwing._arrays import as_sources

if TYPE_CHECKING:
    from lapwing._lapwing import Noise, Rule, Table

_Module = TypeVar("_Module", bound="SourceModule")

_HEADER = 8
"""Bytes in front of a worker's message that say how long it is."""


class SourceModule(torch.nn.Module):
    """A module around something that learns about sources."""

    _rule: Rule | Noise

    def __init__(self, distributed: bool, process_group: dist.ProcessGroup | None) -> None:
        super().__init__()
        self.distributed = distributed
        self.process_group = process_group
        self._message_size = 1 << 10

    @property
    def step_count(self) -> int:
        """How many calls have been made."""
        return self._rule.step

    @property
    def n_sources(self) -> int:
        """How many sources have been seen."""
        return len(self._rule)

    def _by_name(self, column: str) -> dict[str, float]:
        """A column of `sources` by name, in the order of texts: "10" comes before "2"."""
        table = self._rule.sources()
        return dict(sorted(zip(table["source"], table[column].astype(float).tolist())))

    def get_extra_state(self) -> torch.Tensor:
        """All that is known, as a tensor of bytes (JSON): what ``state_dict`` holds, safe to load."""
        return torch.frombuffer(bytearray(self._rule.state()), dtype=torch.uint8)

    def set_extra_state(self, state: torch.Tensor) -> None:
        """Goes on from a saved state, whatever sources either has seen; called by ``load_state_dict``."""
        self._rule.load(state.detach().cpu().numpy().tobytes())

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "process_group": None}  # a group of workers exists in one process only

    def __deepcopy__(self: _Module, memo: dict[int, Any]) -> _Module:
        twin = self.__class__.__new__(self.__class__)
        memo[id(self)] = twin
        twin.__dict__.update(copy.deepcopy(self.__getstate__(), memo))
        twin.process_group = self.process_group
        return twin

    def _shares(self) -> bool:
        """Whether there are other workers to share with."""
        return self.distributed and _workers(self.process_group) > 1

    def _exchange(self, part: bytes, device: torch.device) -> list[bytes]:
        """What every worker said, by rank.

        Messages have one size everywhere, which every worker knows without asking. Where a worker has more to say than
        fits, all see it in the headers and say it again with more room, which stays: rare, so that a step costs one
        collective.
        """
        group = self.process_group
        if dist.get_backend(group) != "nccl":
            device = torch.device("cpu")
        elif device.type != "cuda":
            device = torch.device("cuda", torch.cuda.current_device())
        while True:
            size = self._message_size
            message = np.zeros(_HEADER + size, dtype=np.uint8)
            message[:_HEADER].view(np.uint64)[0] = len(part)
            content = np.frombuffer(part[:size], dtype=np.uint8)
            message[_HEADER : _HEADER + len(content)] = content
            sent = torch.from_numpy(message).to(device)
            received = [torch.empty_like(sent) for _ in range(_workers(group))]
            dist.all_gather(received, sent, group=group)
            messages = [tensor.cpu().numpy() for tensor in received]
            lengths = [int(message[:_HEADER].view(np.uint64)[0]) for message in messages]
            if max(lengths) <= size:
                return [message[_HEADER : _HEADER + n].tobytes() for message, n in zip(messages, lengths)]
            self._message_size = 1 << (max(lengths) - 1).bit_length()


def _workers(group: dist.ProcessGroup | None) -> int:
    return dist.get_world_size(group) if dist.is_available() and dist.is_initialized() else 1


def names_of(sources: Any) -> npt.NDArray[np.int64] | list[Any]:
    """Sources as the rule reads them."""
    if not isinstance(sources, torch.Tensor):
        return as_sources(sources)
    if sources.dtype is torch.int64 and sources.ndim == 1 and sources.is_cpu:
        return sources.numpy()
    if sources.dtype in (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8):
        return sources.to("cpu", torch.int64).reshape(-1).numpy()
    return sources.detach().reshape(-1).tolist()
