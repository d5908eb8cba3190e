"""TinyDB's own tests pass on our database and on our storage.

They come from the source distribution of the installed version: an unpacked one that `TINYDB_SOURCE` names, or one that
pip downloads.
"""

import os
import shutil
import subprocess
import sys
import tarfile
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = ("test_tables.py", "test_queries.py", "test_operations.py", "test_tinydb.py")
# Tests that do not apply, with the reason.
NOT_APPLICABLE = {"test_table_repr": "it expects the names of TinyDB's own storages in the text"}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an unpacked source distribution of TinyDB."""
    if given := os.environ.get("TINYDB_SOURCE"):
        return Path(given)
    folder, version = tmp_path_factory.mktemp("source"), metadata.version("tinydb")
    options = ["--no-binary", ":all:", "--no-deps", "--quiet", "--dest", str(folder)]
    pip = [sys.executable, "-m", "pip", "download", *options, f"tinydb=={version}"]
    if subprocess.run(pip, capture_output=True, check=False).returncode:
        pytest.skip("pip cannot download the source distribution of TinyDB: set TINYDB_SOURCE to an unpacked one")
    with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
        archive.extractall(folder, filter="data")
    return folder / f"tinydb-{version}"


@pytest.mark.soak
@pytest.mark.parametrize("database", ["indexed", "plain"])
def test_the_tests_of_tinydb_pass(database: str, source: Path, tmp_path: Path) -> None:
    for name in FILES:
        shutil.copy(source / "tests" / name, tmp_path)
    left_out = " and ".join(f"not {name}" for name in NOT_APPLICABLE)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.store.tinydb_suite", "-k", left_out, str(tmp_path)]
    environment = {**os.environ, "DATABASE": database, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
