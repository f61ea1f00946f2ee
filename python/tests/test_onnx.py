"""`lapwing export` beside `lapwing predict`, by onnxruntime: networks on tables, texts, pictures and series, and trees."""

import csv
import subprocess
import sys

import numpy as np
import pytest

import lapwing

onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: what ONNX says is NOT tested")


def program(*words):
    run = f"import sys; from lapwing import _lapwing; sys.exit(_lapwing.program({['lapwing', *map(str, words)]!r}))"
    done = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Exported:
    """A model that was trained on `data` with these words, and its file."""

    def __init__(self, data, *words):
        run, file = data.parent / "run", data.parent / "model.onnx"
        program("train", data, "--target", "y", "--source", "ward", "--no-folds", "-q", "--out", run, *words)
        program("export", run, "--onnx", file)
        self.run, self.session = run, onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
        self.inputs = {given.name: given for given in self.session.get_inputs()}

    def says_what_lapwing_says(self, new, given):
        """`new` is a table, `given` the same as arrays. Returns the probabilities, or the values."""
        predicted = list(csv.DictReader(program("predict", self.run, new).splitlines()))
        assert set(given) == set(self.inputs)
        said = dict(zip([output.name for output in self.session.get_outputs()], self.session.run(None, given)))
        names = [name for name in predicted[0] if name.startswith("p_")]
        if not names:
            values = np.array([float(row["prediction"]) for row in predicted])
            np.testing.assert_allclose(said["prediction"], values, atol=1e-4, rtol=1e-4)
            return values
        assert [row["prediction"] for row in predicted] == list(said["prediction"])
        probabilities = np.array([[float(row[name]) for name in names] for row in predicted])
        np.testing.assert_allclose(said["probabilities"], probabilities, atol=1e-4)
        return probabilities


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def column(rows, name, given):
    values = [row[name] for row in rows]
    if given.type == "tensor(string)":
        return np.array(values, dtype=object).reshape(-1, 1)
    return np.array([float(value) if value else np.nan for value in values]).reshape(-1, 1)


def table(path, rows, seed, target):
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
            says = {"values": repr(y), "three": ["low", "middle", "high"][int(np.digitize(y, [-0.5, 0.7]))], "two": y > 0}
            out.writerow([shown, repr(1e9 + 1e3 * random.normal()), colour, kind, f"w{row % 4}", says[target]])


@pytest.mark.parametrize("model", ["mlp", "linear", "trees"])
@pytest.mark.parametrize("target", ["three", "two", "values"])
def test_tables(tmp_path, model, target):
    data, new = tmp_path / "data.csv", tmp_path / "new.csv"
    table(data, 400, 0, target)
    table(new, 200, 1, target)
    exported = Exported(data, "--model", model, "--epochs", 20 if model == "trees" else 5)
    assert set(exported.inputs) == {"size", "big", "colour", "kind, old"}
    rows = rows_of(new)
    exported.says_what_lapwing_says(new, {name: column(rows, name, given) for name, given in exported.inputs.items()})


WORDS = "great film dull boring never always Ça 😂 don't the a of plot".split()


def reviews(path, rows, seed, beside):
    """Texts of which some are empty, with words that training never saw; and, beside them, a title and a number."""
    random = np.random.default_rng(seed)
    with open(path, "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(["review", *(["title", "stars"] if beside else []), "ward", "y"])
        for row in range(rows):
            words = [str(word) for word in random.choice(WORDS, random.integers(0, 12))] + [f"word{random.integers(5000)}"]
            text = "" if row % 17 == 3 else ", ".join(words).upper() + "!"
            good = ("great" in words) + 0.3 * random.normal() > 0.5
            title = [f"{random.choice(WORDS)} {random.choice(WORDS)}", "" if row % 9 == 0 else int(random.integers(1, 6))]
            out.writerow([text, *(title if beside else []), f"w{row % 4}", "good" if good else "bad"])


def as_words(rows, name):
    """As `lapwing export --help` asks for them."""
    found = [lapwing.words(row[name]) for row in rows]
    most = max(1, *map(len, found))
    return np.array([words + [""] * (most - len(words)) for words in found], dtype=object)


@pytest.mark.parametrize("model", ["bag", "lstm", "transformer"])
def test_texts(tmp_path, model):
    data, new, bag = tmp_path / "data.csv", tmp_path / "new.csv", model == "bag"
    reviews(data, 200, 0, bag)
    reviews(new, 60, 1, bag)
    words = ["--text", "review,title", "--hidden", 8] if bag else ["--text", "review", "--hidden", 8]
    exported = Exported(data, "--model", model, "--epochs", 3, *words)
    rows = rows_of(new)
    given = {name: as_words(rows, name) for name in (["review", "title"] if bag else ["review"])}
    if bag:
        given["stars"] = column(rows, "stars", exported.inputs["stars"])
    probabilities = exported.says_what_lapwing_says(new, given)
    assert probabilities[:, 0].std() > 1e-3


def png(path, pixels):
    from PIL import Image

    Image.fromarray(pixels).save(path)


@pytest.mark.parametrize(
    ("model", "side", "epochs"),
    [("small-cnn", 16, 5), ("small-cnn", 48, 5), ("resnet20", 16, 5), ("conv3net", 32, 5), ("resnet18", 8, 1)],
)
def test_pictures(tmp_path, model, side, epochs):
    pytest.importorskip("PIL", reason="Pillow is not installed: exported networks for pictures are NOT tested")
    random = np.random.default_rng(0)
    pictures = random.integers(0, 256, (40, side, side, 3), dtype=np.uint8)
    pictures[::2, : side // 2] //= 4
    with open(tmp_path / "data.csv", "w") as file:
        file.write("file,ward,y\n")
        for row, picture in enumerate(pictures):
            png(tmp_path / f"{row}.png", picture)
            file.write(f"{row}.png,w{row % 4},{'dark' if row % 2 == 0 else 'light'}\n")
    exported = Exported(tmp_path / "data.csv", "--image", "file", "--image-size", side, "--model", model,
                        "--epochs", epochs, "--batch-size", 4, "--learning-rate", 0.0005)
    assert exported.inputs["file"].shape == ["rows", side, side, 3]
    probabilities = exported.says_what_lapwing_says(tmp_path / "data.csv", {"file": pictures})
    assert probabilities[:, 0].std() > 1e-3


def padded(series, to):
    return np.array([list(row) + [np.nan] * (to - len(row)) for row in series])


@pytest.mark.parametrize("model", ["resnet1d", "lstm", "transformer"])
def test_series(tmp_path, model):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed: exported networks for series are NOT tested")
    import pyarrow.parquet

    random = np.random.default_rng(0)

    def series(rows, longest, path):
        lengths = random.integers(5, longest, rows)
        x = [np.sin(np.arange(n) * (0.4 if row % 2 else 1.2)) + 0.1 * random.normal(size=n) for row, n in enumerate(lengths)]
        y = [100 + 50 * random.normal(size=n) for n in lengths]
        columns = {name: pyarrow.array(lists, pyarrow.list_(pyarrow.float64())) for name, lists in [("x", x), ("z", y)]}
        columns |= {"ward": [f"w{row % 4}" for row in range(rows)], "y": [f"speed {row % 2}" for row in range(rows)]}
        pyarrow.parquet.write_table(pyarrow.table(columns), path)
        return x, y

    data, new = tmp_path / "data.parquet", tmp_path / "new.parquet"
    series(60, 40, data)
    # Longer than any in training, too: what is behind its longest does not count.
    x, y = series(40, 60, new)
    hidden = [] if model == "resnet1d" else ["--hidden", 8]
    exported = Exported(data, "--series", "x,z", "--model", model, "--epochs", 3, *hidden)
    longest = max(map(len, x))
    probabilities = exported.says_what_lapwing_says(new, {"x": padded(x, longest), "z": padded(y, longest + 3)[:, :longest]})
    assert probabilities[:, 0].std() > 1e-3


def test_a_column_for_each_moment_is_one_input(tmp_path):
    random = np.random.default_rng(0)
    moments = np.cumsum(random.normal(size=(60, 9)), axis=1)
    with open(tmp_path / "data.csv", "w") as file:
        file.write(",".join(f"t_{at}" for at in range(9)) + ",ward,y\n")
        for row, series in enumerate(moments):
            file.write(",".join(map(repr, series.tolist())) + f",w{row % 4},{series[-1]}\n")
    exported = Exported(tmp_path / "data.csv", "--series", "t_*", "--epochs", 2)
    exported.says_what_lapwing_says(tmp_path / "data.csv", {"t_0..t_8": moments})


def test_words_are_those_that_a_model_of_texts_sees():
    assert lapwing.words("Don't PANIC, it's 3.5 km!") == ["don't", "panic", "it's", "3.5", "km", "!"]
    assert lapwing.words("") == []
    assert len(lapwing.words("a " * 2000)) == 1000
