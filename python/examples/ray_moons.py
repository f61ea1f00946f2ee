"""The loop of torchrun_moons.py under Ray Train, by two workers.

    python ray_moons.py

Ray starts `torch.distributed` for its workers, and the loop is the same. Checks that both workers end in the same state.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it is on by default

import ray
from ray.train import RunConfig, ScalingConfig
from ray.train.torch import TorchConfig, TorchTrainer

from torchrun_moons import check, train

WORKERS = 2


def worker(config: dict[str, Any]) -> None:
    result = train(config)
    check(result)
    (Path(config["place"]) / f"{result['rank']}.txt").write_text(f"{result['count']} {result['state']}")


def main() -> None:
    ray.init(num_cpus=WORKERS, include_dashboard=False, log_to_driver=False)
    with tempfile.TemporaryDirectory() as place:
        trainer = TorchTrainer(
            worker,
            train_loop_config={"place": place},
            torch_config=TorchConfig(backend="gloo"),
            scaling_config=ScalingConfig(num_workers=WORKERS, use_gpu=False),
            run_config=RunConfig(storage_path=place),
        )
        trainer.fit()
        states = [(Path(place) / f"{rank}.txt").read_text() for rank in range(WORKERS)]
    ray.shutdown()
    assert states == [states[0]] * WORKERS and states[0].startswith(f"{WORKERS} "), states
    print(f"{WORKERS} workers of Ray {ray.__version__}: state {states[0].split()[1]}, as promised")


if __name__ == "__main__":
    main()
