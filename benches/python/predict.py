"""Rows per second of predicting a long CSV, from file to file: `lapwing predict` beside scikit-learn and LightGBM.

    LAPWING=target/release/lapwing python benches/python/predict.py [ROWS [DIRECTORY]]     # 10,000,000 rows, 0.7 GB

The table has eight numbers and a category of twelve levels; classes are two. Models are trained on 20,000 rows of the same
kind: a network of 64 and 64 units, and 100 trees of 31 leaves. Each of them then reads the table, predicts, and writes row,
class and probabilities, in a process of its own: seconds from start to end, processor seconds, rows per second, and the most
memory it had; `lapwing` reads all rows, and a tenth of them, too, to show that memory does not grow. The peers get a tenth, and
read it with pandas, 100,000 rows at a time, as a script would in bounded memory; `predict_proba alone` is what of it they spend
there. Everybody is asked to use one thread, so that processor seconds compare.

Needs lightgbm, numpy, pandas and scikit-learn.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CHUNK = 100_000
TRAIN = 20_000
BLOCK = 1_000_000
NUMBERS = [f"x{at}" for at in range(8)]
LEVELS = [f"ward {at}" for at in range(12)]


def table(rows, seed):
    import numpy as np
    import pandas as pd

    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, len(NUMBERS))).round(4)
    level = random.integers(0, len(LEVELS), rows)
    frame = pd.DataFrame(x, columns=NUMBERS)
    frame["ward"] = np.array(LEVELS)[level]
    score = x[:, 0] * x[:, 1] + x[:, 2] + 0.5 * (level % 3) - 0.5 + 0.5 * random.normal(size=rows)
    frame["y"] = np.where(score > 0, "ill", "well")
    return frame


def peer(name):
    """A model of that name, and what it is given of a frame."""
    import numpy as np

    def codes(frame):
        known = {level: code for code, level in enumerate(LEVELS)}
        return np.column_stack([frame[NUMBERS].to_numpy(), frame["ward"].map(known).to_numpy()])

    def one_hot(frame):
        known = {level: code for code, level in enumerate(LEVELS)}
        return np.hstack([frame[NUMBERS].to_numpy(), np.eye(len(LEVELS))[frame["ward"].map(known).to_numpy()]]).astype("float32")

    if name == "scikit-learn MLP":
        from sklearn.neural_network import MLPClassifier

        return MLPClassifier((64, 64), max_iter=3, batch_size=256, random_state=0), one_hot
    if name == "scikit-learn trees":
        from sklearn.ensemble import HistGradientBoostingClassifier

        return HistGradientBoostingClassifier(max_iter=100, max_leaf_nodes=31, early_stopping=False,
                                              categorical_features=[len(NUMBERS)]), codes
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_estimators=100, num_leaves=31, n_jobs=1, verbose=-1), codes


def serve(name, model, data, out):
    """What a script does that predicts a file: run in a process of its own."""
    import pickle

    import pandas as pd

    with open(model, "rb") as file:
        fitted = pickle.load(file)
    features, spent, first = peer(name)[1], 0.0, 1
    with open(out, "w") as file:
        for chunk in pd.read_csv(data, chunksize=CHUNK):
            x = features(chunk)
            began = time.process_time()
            chances = fitted.predict_proba(x)
            spent += time.process_time() - began
            written = pd.DataFrame(chances, columns=[f"p_{c}" for c in fitted.classes_])
            written.insert(0, "prediction", fitted.classes_[chances.argmax(axis=1)])
            written.insert(0, "row", range(first, first + len(chunk)))
            written.to_csv(file, header=first == 1, index=False)
            first += len(chunk)
    print(spent)


def measured(command):
    """Seconds, processor seconds and most megabytes of a command, and what it printed."""
    began, most = time.perf_counter(), 0.0
    running = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True)
    while True:
        # Not by what it leaves behind: that counts the memory of whoever started it.
        with open(f"/proc/{running.pid}/status") as status:
            held = [line.split()[1] for line in status if line.startswith("VmHWM")]
        most = max([most, *(int(kilobytes) / 1024 for kilobytes in held)])
        pid, ended, usage = os.wait4(running.pid, os.WNOHANG)
        if pid:
            break
        time.sleep(0.02)
    assert ended == 0, command
    return time.perf_counter() - began, usage.ru_utime + usage.ru_stime, most, running.stdout.read()


def main():
    if sys.argv[1:2] == ["serve"]:
        return serve(*sys.argv[2:])
    import pickle

    os.environ.update({name: "1" for name in ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"]})
    import pandas as pd

    lapwing = os.environ.get("LAPWING", str(Path(__file__).resolve().parents[2] / "target" / "release" / "lapwing"))
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    with tempfile.TemporaryDirectory(dir=sys.argv[2] if len(sys.argv) > 2 else None) as folder:
        folder = Path(folder)
        train = table(TRAIN, 0)
        train["source"] = [f"s{row % 10}" for row in range(TRAIN)]
        train.to_csv(folder / "train.csv", index=False)
        # Rows are different in a block, and blocks are the same.
        block = table(min(BLOCK, rows), 1).drop(columns="y").to_csv(index=False).encode()
        header, body = block.split(b"\n", 1)
        tables = {count: folder / f"{count}.csv" for count in (rows, max(1, rows // 10))}
        for count, path in tables.items():
            with open(path, "wb") as file:
                file.write(header + b"\n")
                for first in range(0, count, BLOCK):
                    least = min(BLOCK, count - first)
                    file.write(body if least >= min(BLOCK, rows) else b"".join(line + b"\n" for line in body.split(b"\n")[:least]))
        print(f"{rows:,} rows, {tables[rows].stat().st_size / 1e6:.0f} MB", flush=True)

        def show(name, count, seconds, cpu, megabytes, inside):
            alone = f", predict_proba alone {count / inside:,.0f}" if inside else ""
            print(f"{name}, {count:,} rows: {seconds:.1f} s, {cpu:.1f} s of processors: {count / cpu:,.0f} rows per processor second, "
                  f"{megabytes:.0f} MB{alone}", flush=True)

        common = [lapwing, "train", folder / "train.csv", "--target", "y", "--source", "source", "--method", "standard",
                  "--no-folds", "--quiet"]
        for name, words in [("lapwing mlp", ["--model", "mlp", "--hidden", "64,64", "--epochs", "5"]),
                            ("lapwing trees", ["--model", "trees", "--epochs", "100"])]:
            run = folder / name.replace(" ", "-")
            subprocess.run([str(word) for word in [*common, *words, "--out", run]], check=True, stdout=subprocess.DEVNULL)
            for count, path in sorted(tables.items()):
                predict = [lapwing, "predict", run, path, "--out", folder / "out.csv", "--force"]
                show(name, count, *measured(predict)[:3], None)
                with open(folder / "out.csv", "rb") as file:
                    assert sum(1 for _ in file) == count + 1
        for name in ["scikit-learn MLP", "scikit-learn trees", "LightGBM"]:
            model, features = peer(name)
            frame = pd.read_csv(folder / "train.csv")
            model.fit(features(frame), frame["y"])
            with open(folder / "model", "wb") as file:
                pickle.dump(model, file)
            count = min(tables)
            command = [sys.executable, __file__, "serve", name, folder / "model", tables[count], folder / "out.csv"]
            seconds, cpu, megabytes, printed = measured(command)
            show(name, count, seconds, cpu, megabytes, float(printed))


main()
