#!/usr/bin/env python3
"""The figures of the chapters "Choosing a method" and "When it cannot work": docs/book/measure.py [SETTING …]

Deals the digits of `lapwing demo` out to ten sources, spoils some of them, and trains by three methods on each of three
seeds. Verdicts are those of LAP's losses. Needs `cargo build --release` and Python alone; LAPWING names another program.
"""

import csv
import gzip
import json
import os
import random
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
LAPWING = os.environ.get("LAPWING", os.path.join(ROOT, "target", "release", "lapwing"))
DIGITS = os.path.join(ROOT, "crates", "lapwing-run", "digits", "digits.csv.gz")
METHODS = ["standard", "lap", "noise-rate"]
SEEDS = range(3)
TEST = 597


def at_random(row, rng):
    row[-1] = rng.randrange(10)


def next_digit(row, rng):
    row[-1] = (row[-1] + 1) % 10


def some_at_random(row, rng):
    if rng.random() < 0.3:
        at_random(row, rng)


def noisy(row, rng):
    row[:-1] = [min(16, max(0, round(pixel + rng.gauss(0, 12)))) for pixel in row[:-1]]


# name: how many of the ten sources, what is done to their rows, rows per source
SETTINGS = {
    "nothing wrong": (0, None, 120),
    "2 of 10: labels at random": (2, at_random, 120),
    "4 of 10: labels at random": (4, at_random, 120),
    "6 of 10: labels at random": (6, at_random, 120),
    "8 of 10: labels at random": (8, at_random, 120),
    "4 of 10: 30 % of labels at random": (4, some_at_random, 120),
    "4 of 10: the next digit": (4, next_digit, 120),
    "5 of 10: the next digit": (5, next_digit, 120),
    "6 of 10: the next digit": (6, next_digit, 120),
    "4 of 10: noise on the pictures": (4, noisy, 120),
    "4 of 10: labels at random, 40 rows each": (4, at_random, 40),
    "4 of 10: labels at random, 15 rows each": (4, at_random, 15),
}


def tables(folder, digits, bad, spoil, rows, seed):
    rng = random.Random(seed)
    shuffled = [list(row) for row in rng.sample(digits, len(digits))]
    header = [f"pixel_{i // 8}_{i % 8}" for i in range(64)] + ["digit", "source"]
    train, test = (os.path.join(folder, name) for name in ("train.csv", "test.csv"))
    spoilt = []
    for at, row in enumerate(shuffled[TEST : TEST + 10 * rows]):
        source = at % 10
        if source < bad:
            spoil(row, rng)
        spoilt.append([*row, f"bad {source}" if source < bad else f"good {source}"])
    for path, lines in ((train, spoilt), (test, [[*row, ""] for row in shuffled[:TEST]])):
        with open(path, "w", newline="") as file:
            csv.writer(file).writerows([header, *lines])
    return train, test


def trained(train, test, method, seed, out):
    command = [LAPWING, "train", train, "--test", test, "--target", "digit", "--source", "source", "--model", "mlp"]
    # Networks that judge labels cost three trainings more, and change no model.
    command += ["--no-folds", "--method", method, "--seed", str(seed), "--out", out, "--force", "--json", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def main():
    wanted = sys.argv[1:] or list(SETTINGS)
    with gzip.open(DIGITS, "rt") as file:
        digits = [[int(value) for value in row] for row in csv.reader(file)]
    print("| setting |", " | ".join(METHODS), "| bad sources flagged | good ones flagged |")
    print("|---" * (len(METHODS) + 3) + "|")
    for name in wanted:
        bad, spoil, rows = SETTINGS[name]
        scores, flagged = {method: [] for method in METHODS}, {"bad": 0, "good": 0}
        with tempfile.TemporaryDirectory() as folder:
            for seed in SEEDS:
                train, test = tables(folder, digits, bad, spoil, rows, seed)
                for method in METHODS:
                    result = trained(train, test, method, seed, os.path.join(folder, method))
                    scores[method].append(result["test"]["accuracy"])
                    for source in result["sources"] if method == "lap" else []:
                        kind = source["source"].split()[0]
                        flagged[kind] += source["verdict"] in ("unreliable", "suspect")
        means = " | ".join(f"{100 * sum(values) / len(values):.1f}" for values in scores.values())
        of = len(SEEDS)
        print(f"| {name} | {means} | {flagged['bad']} of {of * bad} | {flagged['good']} of {of * (10 - bad)} |", flush=True)


if __name__ == "__main__":
    main()
