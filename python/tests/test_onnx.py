"""`lapwing export` beside `lapwing predict`, by onnxruntime."""

import csv
import subprocess
import sys

import numpy as np
import pytest

onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: what ONNX says is NOT tested")




def lapwing(*words):
    run = f"import sys; from lapwing import _lapwing; sys.exit(_lapwing.program({['lapwing', *map(str, words)]!r}))"
    done = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def table(path, rows, seed, classes):
    """Numbers of which some are missing or wild, levels of which some are rare, missing or new."""
    random = np.random.default_rng(seed)
    with open(path, "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["size", "big", "colour", "kind, old", "ward", "y"])
        for row in range(rows):
            size, colour = random.normal(), str(random.choice(["red", "blue", "green", "", f"rare{row % 50}"]))
            kind = str(random.choice(["a", "b"]))
            y = size + (colour == "red") - (kind == "a") * 0.5
            shown = "" if random.random() < 0.1 else repr(100 * size if random.random() < 0.02 else size)
            target = ["low", "middle", "high"][int(np.digitize(y, [-0.5, 0.7]))] if classes else repr(y)
            out.writerow([shown, repr(1e9 + 1e3 * random.normal()), colour, kind, f"w{row % 4}", target])


@pytest.mark.parametrize("model", ["mlp", "linear"])
@pytest.mark.parametrize("classes", [True, False], ids=["classes", "values"])
def test_onnx_says_what_lapwing_says(tmp_path, model, classes):
    data, new = tmp_path / "data.csv", tmp_path / "new.csv"
    table(data, 400, 0, classes)
    table(new, 200, 1, classes)
    run, file = tmp_path / "run", tmp_path / "model.onnx"
    lapwing("train", data, "--target", "y", "--source", "ward", "--model", model, "--epochs", 5, "--no-folds", "--out", run, "-q")
    lapwing("export", run, "--onnx", file)
    predicted = list(csv.DictReader(lapwing("predict", run, new).splitlines()))
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    with open(new, newline="") as opened:
        rows = list(csv.DictReader(opened))
    inputs = {}
    for given in session.get_inputs():
        values = [row[given.name] for row in rows]
        if given.type == "tensor(string)":
            inputs[given.name] = np.array(values, dtype=object).reshape(-1, 1)
        else:
            inputs[given.name] = np.array([float(value) if value else np.nan for value in values]).reshape(-1, 1)
    assert set(inputs) == {"size", "big", "colour", "kind, old"}
    said = dict(zip([output.name for output in session.get_outputs()], session.run(None, inputs)))
    if classes:
        assert [row["prediction"] for row in predicted] == list(said["prediction"])
        names = [name for name in predicted[0] if name.startswith("p_")]
        expected = np.array([[float(row[name]) for name in names] for row in predicted])
        np.testing.assert_allclose(said["probabilities"], expected, atol=1e-4)
    else:
        expected = np.array([float(row["prediction"]) for row in predicted])
        np.testing.assert_allclose(said["prediction"], expected, atol=1e-4)


