"""Two moons from five sources, of which two lie, trained by several processes that share each batch.

    torchrun --nproc-per-node 2 torchrun_moons.py

Nothing of LAP knows of it: where `torch.distributed` is running, the module merges what all processes saw of a source before it
weighs, so that all of them end in the same state, that of one process with the whole batch. Each prints a checksum of it, and
checks what it promises: the liars are found, and nobody else is accused. Started by hand, it is one process.
"""

from __future__ import annotations

import hashlib
import os
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from lapwing import LossAdaptedPlasticity
from two_moons import LIES, moons


def train(config: dict[str, Any] | None = None) -> dict[str, Any]:
    """What this process comes to; the launcher has started `torch.distributed`, or there is only this one."""
    rank, count = (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)
    torch.manual_seed(0)
    random = np.random.default_rng(0)
    points, truth = moons(600, random)
    sources = np.array(list(LIES))[random.integers(0, len(LIES), 600)]
    lied = torch.tensor([random.random() < LIES[name] for name in sources])
    labels = torch.where(lied, 1 - truth, truth)

    model: torch.nn.Module = torch.nn.Sequential(torch.nn.Linear(2, 64), torch.nn.ReLU(), torch.nn.Linear(64, 2))
    if count > 1:
        model = torch.nn.parallel.DistributedDataParallel(model)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    criterion = torch.nn.CrossEntropyLoss(reduction="none")
    lap = LossAdaptedPlasticity(history_length=25, warmup_iters=0, leniency=0.8)
    for _ in range(60):
        for batch in torch.from_numpy(random.permutation(600)).split(60):
            mine = batch[rank * 60 // count : (rank + 1) * 60 // count]
            losses = lap(criterion(model(points[mine]), labels[mine]), sources[mine.numpy()])
            optimiser.zero_grad()
            losses.mean().backward()
            optimiser.step()
    state = lap.state_dict()["_extra_state"].numpy().tobytes()
    table = lap.sources().to_dict()
    return {
        "rank": rank,
        "count": count,
        "state": hashlib.sha256(state).hexdigest()[:16],
        "verdicts": dict(zip(table["source"], table["verdict"])),
    }


def check(result: dict[str, Any]) -> None:
    expected = {name: "unreliable" if lies else "reliable" for name, lies in LIES.items()}
    assert result["verdicts"] == expected, result["verdicts"]


def main() -> None:
    torch.set_num_threads(1)
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
    result = train()
    check(result)
    # In one piece with the end of its line: all processes write to the same place.
    line = f"process {result['rank']} of {result['count']}: state {result['state']}, as promised\n"
    print(line, end="", flush=True)
    if dist.is_initialized():
        dist.barrier()
        dist.destroy_process_group()
        # `DistributedDataParallel` keeps the threads of the group, which is destroyed, alive. One that still has something to
        # give back when the interpreter goes down aborts the process, so it does not go down in steps.
        os._exit(0)


if __name__ == "__main__":
    main()
