import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from dlbricks_tui import __version__
from dlbricks_tui.fleet.installing import write_wheel
from dlbricks_tui.folders import SAMPLE_MODELS, THEMES

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder], cwd=ROOT, check=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-compile", "--target"]
    subprocess.run([*install, str(folder), str(wheel)], check=True)
    return folder


def test_the_wheel_holds_the_package_with_its_samples_and_themes_and_nothing_else(wheel: Path) -> None:
    files = {Path(name) for name in ZipFile(wheel).namelist()}
    assert {file.parts[0] for file in files} == {"dlbricks_tui", f"dlbricks_tui-{__version__}.dist-info"}
    assert Path("dlbricks_tui/py.typed") in files
    for resource in (SAMPLE_MODELS, THEMES):
        networks = [*resource.rglob("*-symbol.json"), *resource.rglob("*.onnx")]
        expected = {file.relative_to(ROOT) for file in (*resource.iterdir(), *networks) if file.is_file()}
        assert expected <= {Path(*file.parts[1:]) for file in files}
    assert not {file for file in files if "builders" in file.parts}


def test_the_installed_command_works_from_any_folder(installed: Path, tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(installed)}
    where = "import dlbricks_tui.folders as s; print(s.SAMPLE_MODELS, s.THEMES, sep='\\n')"
    found = subprocess.run(
        [sys.executable, "-c", where], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    package = installed / "dlbricks_tui"
    assert found.stdout.splitlines() == [str(package / "sample_models"), str(package / "themes")]

    version = subprocess.run(
        [installed / "bin" / "dlbricks", "--version"], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert version.stdout == f"dlbricks {__version__}\n"


def test_the_wheel_for_hosts_of_a_fleet_has_the_content_of_the_built_one(wheel: Path, tmp_path: Path) -> None:
    with ZipFile(wheel) as built, ZipFile(write_wheel(tmp_path)) as sent:
        # Each builder of wheels signs with its name.
        names = {name for name in built.namelist() if not name.endswith((".dist-info/RECORD", ".dist-info/WHEEL"))}
        assert names == {
            name for name in sent.namelist() if not name.endswith((".dist-info/RECORD", ".dist-info/WHEEL"))
        }
        differing = [name for name in names if built.read(name) != sent.read(name)]
    # The metadata is that of the installation, which may be older than the README of a checkout.
    assert set(differing) <= {f"dlbricks_tui-{__version__}.dist-info/METADATA"}
