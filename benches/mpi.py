#!/usr/bin/env python3
"""How much faster two processes of MPI are than the program without MPI on one core: benches/mpi.py [TIMES]

Trains the table network (20 columns, two layers of 256) with batches of 1,024 and of 8,192 rows, and ResNet-20 with batches of
128 pictures, by one process pinned to a core without a launcher, by `mpirun -n 1` and by `mpirun -n 2`, one thread each, in turn,
TIMES (5) times. What is compared is the time of the epochs beyond the first: reading and starting do not count. Prints the
medians, the ratio of the first to the last of each round (its median, least and most), and the load of the machine, which
should be idle. With the bytes that a step sends, from the number of parameters and sources.

Needs `cargo build --release -p lapwing --features mpi`, Open MPI and Python alone; LAPWING names another program.
"""

import os
import random
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LAPWING = os.environ.get("LAPWING", str(ROOT / "target" / "release" / "lapwing"))
SOURCES = 10
FLAGS = "--test-fraction 0 --validation-fraction 0 --no-folds --method lap --threads 1 --quiet --shards".split()
MPIRUN = "mpirun --oversubscribe --bind-to core -n".split()
TABLE, PICTURES = 65_536, 1_024
NETWORKS = {
    # Table, flags, batch, epochs beyond the first, parameters.
    "table network": [
        ("table.csv", "--target y --source source --hidden 256,256 --batch-size 1024", 1_024, 6, 71_682),
        ("table.csv", "--target y --source source --hidden 256,256 --batch-size 8192", 8_192, 6, 71_682),
    ],
    "ResNet-20": [
        ("pictures.csv", "--target y --source source --image file --image-size 32 --model resnet20 --batch-size 128", 128, 1, 269_722),
    ],
}


def make(place):
    draw = random.Random(0)
    with open(place / "table.csv", "w") as file:
        print(",".join(f"c{at}" for at in range(20)) + ",source,y", file=file)
        for row in range(TABLE):
            cells = [f"{draw.random():.4f}" for _ in range(20)]
            print(",".join(cells) + f",s{row % SOURCES},{int(float(cells[0]) + float(cells[1]) > 1)}", file=file)
    with open(place / "pictures.csv", "w") as file:
        print("file,source,y", file=file)
        for row in range(PICTURES):
            (place / f"{row}.png").write_bytes(png(draw.randbytes(32 * 32 * 3)))
            print(f"{row}.png,s{row % SOURCES},c{draw.randrange(10)}", file=file)


def png(rgb):
    part = lambda kind, body: struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    lines = b"".join(b"\0" + rgb[96 * y : 96 * (y + 1)] for y in range(32))
    head = struct.pack(">IIBBBBB", 32, 32, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", zlib.compress(lines, 1)) + part(b"IEND", b"")


def seconds(place, launcher, table, flags, shards, epochs):
    words = [*launcher, LAPWING, "train", table, *flags.split(), *FLAGS, str(shards), "--out", "run", "--force"]
    begin = time.monotonic()
    subprocess.run([*words, "--epochs", str(epochs)], cwd=place, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - begin


def main():
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    launchers = {"alone": (["taskset", "-c", "0"], 1), "-n 1": ([*MPIRUN, "1"], 1), "-n 2": ([*MPIRUN, "2"], 2)}
    with tempfile.TemporaryDirectory(prefix="lapwing-mpi-") as folder:
        place = Path(folder)
        make(place)
        for name, trials in NETWORKS.items():
            for table, flags, batch, epochs, parameters in trials:
                rows = TABLE if table == "table.csv" else PICTURES
                steps = epochs * (rows // batch)
                spent = {launcher: [] for launcher in launchers}
                loads = []
                for _ in range(times):
                    for launcher, (words, shards) in launchers.items():
                        short = seconds(place, words, table, flags, shards, 1)
                        spent[launcher].append(seconds(place, words, table, flags, shards, 1 + epochs) - short)
                    loads.append(os.getloadavg()[0])
                ratios = sorted(alone / both for alone, both in zip(spent["alone"], spent["-n 2"]))
                shown = ", ".join(f"{key} {1000 * statistics.median(own) / steps:.1f} ms" for key, own in spent.items())
                print(
                    f"{name}, batch {batch}: a step takes {shown}; -n 2 is {statistics.median(ratios):.2f} times as fast as alone "
                    f"({ratios[0]:.2f} to {ratios[-1]:.2f}); {4 * parameters / 1e6:.2f} MB of gradient out and in and "
                    f"{19 * SOURCES * 2} bytes of sums a step; load {statistics.mean(loads):.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
