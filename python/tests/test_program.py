"""The program that the package brings."""

import subprocess
import sys

import lapwing


def run(*words, **options):
    command = [sys.executable, "-m", "lapwing", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, **options)


def test_it_is_of_the_version_of_the_package():
    done = run("--version")
    assert done.returncode == 0
    assert done.stdout == f"lapwing {lapwing.__version__}\n"


def test_wrong_words_are_exit_code_2_with_advice():
    done = run("tran")
    assert done.returncode == 2
    assert "train" in done.stderr and "Usage: lapwing" in done.stderr


def test_a_file_that_is_not_there_is_exit_code_2():
    done = run("train", "nothing.csv", "--target", "y", "--source", "s")
    assert done.returncode == 2
    assert "nothing.csv" in done.stderr


def test_names_that_are_no_text_reach_it(tmp_path):
    # A name of a file is bytes; what cannot be decoded must not get lost on the way.
    name = tmp_path / b"l\xff.csv".decode(errors="surrogateescape")
    name.write_text("step,source,loss\n0,a,1\n0,b,2\n")
    done = run("replay", str(name), "--summary")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("source,")


def test_it_trains_from_a_table_to_a_report(tmp_path):
    rows = [f"{i % 7},{i % 2},{'ab'[i % 3 == 0]}" for i in range(60)]
    (tmp_path / "table.csv").write_text("\n".join(["x,y,s", *rows, ""]))
    words = ["train", "table.csv", "--target", "y", "--source", "s", "--epochs", "1", "--out", "run", "--quiet"]
    done = run(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "report.html").exists()
