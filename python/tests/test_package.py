"""The package as a whole: types, examples, names."""

import ast
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import lapwing

ROOT = Path(__file__).parents[1]


def test_everything_promised_is_there():
    for name in lapwing.__all__:
        if name.startswith("Lap") and name != "Lap":
            pytest.importorskip("sklearn")
        if name in ("LossAdaptedPlasticity", "NoiseRateLoss"):
            pytest.importorskip("torch")
        assert getattr(lapwing, name) is not None and name in dir(lapwing)
    with pytest.raises(AttributeError, match="Lab"):
        lapwing.Lab


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_an_example_keeps_its_promises(example):
    for line in example.read_text().splitlines():
        if line.startswith(("import ", "from ")) and "__future__" not in line:
            package = line.split()[1].split(".")[0]
            # An example may build on another one beside it.
            if find_spec(package) is None and not (example.parent / f"{package}.py").exists():
                pytest.skip(f"needs {package}")
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


def names_in(body):
    return {node.name for node in body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}


def test_stubs_name_what_the_extension_holds():
    from lapwing import _lapwing

    stubs = ast.parse((Path(lapwing.__file__).parent / "_lapwing.pyi").read_text())
    assert names_in(stubs.body) | {"__version__"} == set(_lapwing.__all__)
    for node in stubs.body:
        if isinstance(node, ast.ClassDef):
            kind = getattr(_lapwing, node.name)
            public = {name for name in vars(kind) if not name.startswith("__")}
            assert {name for name in names_in(node.body) if not name.startswith("__")} == public, node.name
            assert all(hasattr(kind, name) for name in names_in(node.body))
            assert node.body and (kind.__doc__ or "").strip()
