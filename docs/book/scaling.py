"""The scaling model of the chapter on many machines: python3 docs/book/scaling.py"""

from math import ceil, log2

LATENCY = 30e-6  # seconds; Ethernet within a rack
BANDWIDTH = 1.1e9  # bytes per second; 10 Gbit/s less what protocols take
SOURCES = 50


def share(compute: float, parameters: int, machines: int) -> float:
    """Which share of a step is computing, where every machine has as many rows as one had."""
    if machines == 1:
        return 1.0
    volume = 8 * parameters * (machines - 1) / machines + 19 * SOURCES * machines
    talk = 10 * LATENCY * ceil(log2(machines)) + volume / BANDWIDTH
    return compute / (compute + talk)


print("assumed: latency 30 µs, 1.1 GB/s, 50 sources in a batch, machines with as many rows each")
print(f"{'':44}" + "".join(f"{machines:>6}" for machines in (2, 8, 64)) + "  machines")
for name, compute, parameters in [
    ("70,000 parameters, a step of 5 ms", 5e-3, 70_000),
    ("70,000 parameters, a step of 40 ms", 40e-3, 70_000),
    ("270,000 parameters, a step of 200 ms", 200e-3, 270_000),
    ("4,000,000 parameters, a step of 50 ms", 50e-3, 4_000_000),
]:
    shares = "".join(f"{100 * share(compute, parameters, machines):>5.0f}%" for machines in (2, 8, 64))
    print(f"{name:44}{shares}")
