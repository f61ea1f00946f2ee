"""The part of lapwing that is written in Rust."""

from typing import Any, TypedDict, final

import numpy as np
import numpy.typing as npt

__version__: str

_Losses = npt.NDArray[np.float32] | npt.NDArray[np.float64]
_Sources = npt.NDArray[np.int64] | list[Any] | tuple[Any, ...]

class SourceTable(TypedDict):
    source: list[str]
    rows: list[int]
    batches: list[int]
    unreliability: list[int]
    weight: list[float]
    mean_loss: list[float | None]
    reference_loss: list[float | None]
    reference_std: list[float | None]
    nonfinite: list[int]
    judged: list[int]
    above: list[int]
    first_departure_step: list[int | None]

@final
class Rule:
    def __new__(
        cls,
        *,
        history_length: int,
        leniency: float,
        depression_strength: float,
        discrete_amount: float,
        warmup: int,
        ties: str,
        weighting: str,
    ) -> Rule: ...
    def weigh(self, losses: _Losses, sources: _Sources) -> tuple[Any, bool]: ...
    def start(self, losses: _Losses, sources: _Sources) -> bytes: ...
    def finish(self, parts: list[bytes]) -> tuple[npt.NDArray[np.float64], bool]: ...
    @property
    def step(self) -> int: ...
    def __len__(self) -> int: ...
    def weight(self, source: object) -> float: ...
    def unreliability(self, source: object) -> int: ...
    def sources(self) -> SourceTable: ...
    def present(self) -> list[tuple[str, float | None, int, float]]: ...
    def state(self) -> bytes: ...
    def load(self, state: bytes, *, prior: bool = False) -> None: ...
    def __copy__(self) -> Rule: ...
    def __deepcopy__(self, _memo: Any) -> Rule: ...

def _restore(
    history_length: int,
    leniency: float,
    depression_strength: float,
    warmup: int,
    ties: str,
    weighting: str,
    state: bytes,
) -> Rule: ...
