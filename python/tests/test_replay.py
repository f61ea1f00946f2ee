"""`lapwing.replay`, tables, pictures and the report."""

import csv
import pickle

import numpy as np
import pytest

import golden
import lapwing


def log(rows=3000, bad="ward 2"):
    rng = np.random.default_rng(5)
    step = np.sort(rng.integers(0, 300, rows))
    source = np.array([f"ward {i}" for i in rng.integers(0, 5, rows)])
    loss = rng.uniform(0.1, 0.6, rows) + 0.8 * (source == bad)
    loss[[7, 50]] = [np.nan, np.inf]
    return {"step": step, "source": source, "loss": loss}


@pytest.fixture(scope="module")
def expected():
    """The same by `Lap`, batch by batch."""
    data, lap, rows = log(), lapwing.Lap(), []
    for step in np.unique(data["step"]):
        own = data["step"] == step
        lap.weigh(data["loss"][own], data["source"][own])
        rows += [(int(step), *present) for present in lap._rule.present()]
    return rows, lap


def as_rows(table):
    columns = table.to_dict()
    return list(zip(*(columns[name] for name in ("step", "source", "loss", "unreliability", "weight"))))


def test_a_dictionary_of_columns(expected):
    result = lapwing.replay(log())
    assert as_rows(result.steps) == expected[0]
    ours, direct = result.sources.to_dict(), expected[1].sources().to_dict()
    for name in ours.keys() - {"first_departure_step"}:
        assert ours[name] == direct[name], name
    assert dict(zip(ours["source"], ours["verdict"]))["ward 2"] == "unreliable"
    assert sum(ours["nonfinite"]) == 2


def test_departures_are_told_in_the_steps_of_the_log():
    data = log()
    data["step"] = data["step"] * 10 + 1000
    shifted, plain = lapwing.replay(data).sources, lapwing.replay(log()).sources
    steps = np.unique(log()["step"])
    known = ~np.isnan(plain["first_departure_step"])
    assert known.any()
    assert np.array_equal(
        shifted["first_departure_step"][known], plain["first_departure_step"][known] * 10 + 1000
    )
    assert set(plain["first_departure_step"][known]) <= set(steps.tolist())


@pytest.mark.parametrize("kind", ["pandas", "pandas-category", "polars", "polars-lazy-chunks", "pyarrow"])
def test_tables_of_every_library(kind, expected):
    data = log()
    if kind.startswith("pandas"):
        frame = pytest.importorskip("pandas").DataFrame(data)
        if kind == "pandas-category":
            frame["source"] = frame["source"].astype("category")
    elif kind.startswith("polars"):
        polars = pytest.importorskip("polars")
        frame = polars.DataFrame(data)
        if kind == "polars-lazy-chunks":
            frame = polars.concat([frame[:100], frame[100:]], rechunk=False)
            frame = frame.with_columns(polars.col("source").cast(polars.Categorical))
    else:
        frame = pytest.importorskip("pyarrow").table(data)
    assert as_rows(lapwing.replay(frame).steps) == expected[0]


def test_pandas_without_arrow(expected):
    frame = pytest.importorskip("pandas").DataFrame(log())

    class Plain:
        columns = frame.columns

        def __getitem__(self, name):
            return frame[name]

    assert as_rows(lapwing.replay(Plain()).steps) == expected[0]


def test_files(tmp_path, expected):
    data = log()
    path = tmp_path / "losses.csv"
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["iteration", "ward", "value"])
        writer.writerows(zip(data["step"].tolist(), data["source"].tolist(), map(repr, data["loss"].tolist())))
    result = lapwing.replay(path, step="iteration", source="ward", loss="value")
    assert as_rows(result.steps) == expected[0]
    polars = pytest.importorskip("polars")
    polars.DataFrame(data).write_parquet(tmp_path / "losses.parquet")
    assert as_rows(lapwing.replay(str(tmp_path / "losses.parquet")).steps) == expected[0]


def test_sources_of_every_type():
    pyarrow = pytest.importorskip("pyarrow")
    for values, names in [
        (pyarrow.array([3, 4], pyarrow.int8()), ["3", "4"]),
        (pyarrow.array([2**64 - 1, 4], pyarrow.uint64()), ["18446744073709551615", "4"]),
        (pyarrow.array([3.0, 4.5]), ["3", "4.5"]),
        (pyarrow.array([True, False]), ["true", "false"]),
        (pyarrow.array(["ä", ""], pyarrow.large_string()), ["ä", ""]),
        (pyarrow.array(["x", "y"]).dictionary_encode(), ["x", "y"]),
    ]:
        table = pyarrow.table({"step": [1.0, 1.0], "source": values, "loss": [1, 2]})
        assert lapwing.replay(table).sources["source"] == names


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"step": ["a", "b", "c"]}, TypeError, "'step'|\"step\""),
        ({"step": [0, 2, 1]}, ValueError, "row 2: step 1 comes after step 2"),
        ({"step": [0, None, 1]}, ValueError, "row 1: the step is missing"),
        ({"step": [0, 0.5, 1]}, ValueError, "row 1: step 0.5 is not a whole number"),
        ({"source": ["a", None, "b"]}, ValueError, "row 1: the source is missing"),
        ({"loss": ["a", "b", "c"]}, TypeError, "must hold numbers"),
        ({"loss": None}, KeyError, "no column .*loss.* has step, source"),
        ({"step": [], "source": [], "loss": []}, (ValueError, TypeError), "no rows|must hold"),
    ],
)
def test_bad_tables_are_refused_with_row_and_reason(change, error, message):
    pyarrow = pytest.importorskip("pyarrow")
    columns = {"step": [0, 0, 1], "source": ["a", "b", "a"], "loss": [1.0, None, 2.0], **change}
    table = pyarrow.table({name: values for name, values in columns.items() if values is not None})
    with pytest.raises(error, match=message):
        lapwing.replay(table)


def test_what_is_no_table_is_refused():
    with pytest.raises(TypeError, match="not int"):
        lapwing.replay(3)
    with pytest.raises(KeyError, match="step"):
        lapwing.replay({"a": [1]})
    with pytest.raises(ValueError, match="whole numbers"):
        lapwing.replay({"step": [0.5], "source": [1], "loss": [1.0]})
    with pytest.raises(ValueError, match="nothing-here"):
        lapwing.replay("nothing-here.csv")


def test_the_golden_traces_by_replay():
    rows = golden.read("pkg_partial_samples")
    data = {
        "step": [int(row["step"]) for row in rows],
        "source": [int(row["source"]) for row in rows],
        "loss": [row["loss"] for row in rows],
    }
    result = lapwing.replay(data, history_length=5)
    final = dict(zip(result.sources["source"], result.sources["unreliability"].tolist()))
    assert [final[str(s)] for s in range(6)] == golden.states("partial")[-1]


def test_tables_go_out_to_every_library():
    result = lapwing.replay(log())
    for table in (result.steps, result.sources):
        pandas, polars, pyarrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
        frames = [table.to_pandas(), table.to_polars(), pyarrow.table(table), polars.DataFrame(table)]
        for frame in frames:
            assert len(frame) == len(table)
        assert list(frames[0].columns) == frames[1].columns == frames[2].column_names == table.column_names
        assert frames[1].to_dict(as_series=False) == frames[2].to_pydict() == table.to_dict()
        assert isinstance(frames[0], pandas.DataFrame)
    with pytest.raises(KeyError, match="no column \"weigth\"; there are step, source"):
        result.steps["weigth"]
    assert "rows of step, source" in repr(result.steps)
    for table in (result.steps, result.sources):
        assert pickle.loads(pickle.dumps(table)).to_dict() == table.to_dict()


def test_the_report_is_a_page_that_names_the_bad_source(tmp_path):
    result = lapwing.replay(log(bad="<b>ward 2</b>") | {"source": ["<b>x</b>"] * 1500 + ["y"] * 1500})
    page = result.report(tmp_path / "report.html", title="Night shift")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == page
    assert "Night shift" in page and "&lt;b&gt;x" in page and "<b>x</b>" not in page
    page = lapwing.report(lapwing.replay(log()))
    assert "unreliable" in page and "ward 2" in page and page.startswith("<!")
    lap = lapwing.Lap(leniency=float("inf"))
    lap.weigh([1.0, 2.0], ["a", "b"])
    assert "Nobody was judged" in lapwing.report(lap)
    with pytest.raises(TypeError, match="neither"):
        lapwing.report(3)


def test_pictures():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    result = lapwing.replay(log())
    for column in ("weight", "loss", "unreliability"):
        axes = lapwing.plot(result, column, sources=2)
        assert len(axes.lines) == 5 and axes.get_ylabel() == column
        assert [text.get_text() for text in axes.get_legend().get_texts()][0] == "ward 2"
    with pytest.raises(ValueError, match="'weight', 'loss' or 'unreliability'"):
        lapwing.plot(result, "wait")
    with pytest.raises(TypeError, match="no record of single steps"):
        lapwing.plot(lapwing.Lap())
