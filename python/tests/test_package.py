"""The package as a whole: types, examples, names."""

import subprocess
import sys
from pathlib import Path

import pytest

import lapwing

ROOT = Path(__file__).parents[1]


def test_everything_promised_is_there():
    for name in lapwing.__all__:
        if name.startswith("Lap") and name != "Lap":
            pytest.importorskip("sklearn")
        if name == "LossAdaptedPlasticity":
            pytest.importorskip("torch")
        assert getattr(lapwing, name) is not None and name in dir(lapwing)
    with pytest.raises(AttributeError, match="Lab"):
        lapwing.Lab


def test_the_example_keeps_its_promises():
    pytest.importorskip("torch")
    example = ROOT / "examples" / "two_moons.py"
    said = subprocess.run([sys.executable, example], capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    assert said.stdout.rstrip().endswith("as promised")


def test_types():
    pytest.importorskip("mypy")
    package = Path(lapwing.__file__).parent
    assert (package / "py.typed").exists() and (package / "_lapwing.pyi").exists()
    command = [sys.executable, "-m", "mypy", "--config-file", ROOT / "pyproject.toml", "-p", "lapwing"]
    said = subprocess.run(command, capture_output=True, text=True)
    assert said.returncode == 0, said.stdout + said.stderr


def test_stubs_say_what_the_extension_holds():
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy.stubtest", "lapwing._lapwing", "--ignore-disjoint-bases"]
    said = subprocess.run(command, capture_output=True, text=True)
    assert said.returncode == 0, said.stdout + said.stderr
