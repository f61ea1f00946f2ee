#!/usr/bin/env python3
"""The table of the chapter "Beside other tools": docs/book/peers.py MUSIC_DIRECTORY

MUSIC_DIRECTORY holds music_genre_mturk.csv.gz and music_genre_test.csv. Needs cleanlab, crowd-kit and scikit-learn, and
`cargo build --release`; LAPWING names another program. Every peer ends in the same scikit-learn network of two layers of
64 units on standardised features, as lapwing's; three seeds.
"""

import json
import os
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
LAPWING = os.environ.get("LAPWING", os.path.join(ROOT, "target", "release", "lapwing"))
SEEDS = range(3)


def network(seed):
    return make_pipeline(StandardScaler(), MLPClassifier((64, 64), alpha=1e-3, early_stopping=True, random_state=seed))


def features(table):
    return table.filter(like="feature").to_numpy()


def plain(train, seed):
    return network(seed).fit(features(train), train["class"])


def cleanlab(train, seed):
    from cleanlab.filter import find_label_issues

    x, y = features(train), train["class"].to_numpy()
    codes = pd.Categorical(y).codes
    base = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    # A song's answers stay together, so that none is predicted from another on the same song.
    from sklearn.model_selection import GroupKFold

    chances = cross_val_predict(base, x, codes, groups=train["id"], cv=GroupKFold(5), method="predict_proba")
    kept = ~find_label_issues(codes, chances)
    return network(seed).fit(x[kept], y[kept])


def dawid_skene(train, seed):
    from crowdkit.aggregation import DawidSkene

    answers = train.rename(columns={"id": "task", "annotator": "worker", "class": "label"})
    labels = DawidSkene(n_iter=100).fit_predict(answers[["task", "worker", "label"]])
    songs = train.drop_duplicates("id")
    return network(seed).fit(features(songs), labels.loc[songs["id"]].to_numpy())


def majority(train, seed):
    labels = train.groupby("id")["class"].agg(lambda answers: answers.mode().iloc[0])
    songs = train.drop_duplicates("id")
    return network(seed).fit(features(songs), labels.loc[songs["id"]].to_numpy())


def lapwing(method):
    def score(directory, seed):
        paths = [os.path.join(directory, name) for name in ("music_genre_mturk.csv.gz", "music_genre_test.csv")]
        with tempfile.TemporaryDirectory() as folder:
            command = [LAPWING, "train", paths[0], "--test", paths[1], "--target", "class", "--source", "annotator", "--model", "mlp"]
            command += ["--no-folds", "--method", method, "--seed", str(seed), "--out", os.path.join(folder, "run"), "--json", "-q"]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
        return json.loads(done.stdout)["test"]["accuracy"]

    return score


def main():
    warnings.filterwarnings("ignore")
    directory = sys.argv[1]
    train = pd.read_csv(os.path.join(directory, "music_genre_mturk.csv.gz"))
    test = pd.read_csv(os.path.join(directory, "music_genre_test.csv"))
    peers = {"every answer as it is": plain, "majority of the answers per song": majority,
             "Dawid–Skene (crowd-kit), then a network": dawid_skene, "cleanlab's pruning, then a network": cleanlab}
    for name, fit in peers.items():
        scores = [fit(train, seed).score(features(test), test["class"]) for seed in SEEDS]
        print(f"| {name} | {np.mean(scores):.3f} | {' '.join(f'{score:.3f}' for score in scores)}", flush=True)
    for method in ("standard", "lap", "noise-rate", "group-dro"):
        scores = [lapwing(method)(directory, seed) for seed in SEEDS]
        print(f"| lapwing {method} | {np.mean(scores):.3f} | {' '.join(f'{score:.3f}' for score in scores)}", flush=True)


if __name__ == "__main__":
    main()
