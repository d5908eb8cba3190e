import base64
import csv
import hashlib
from email import message_from_bytes
from importlib import metadata
from pathlib import Path
from zipfile import ZipFile

import pytest

from dlbricks_tui import __version__
from dlbricks_tui.fleet.errors import FleetError
from dlbricks_tui.fleet.setting_up import own_wheel
from dlbricks_tui.fleet.setting_up.host_check import content_of
from dlbricks_tui.fleet.setting_up.own_wheel import own_files, wanted, write_wheel
from dlbricks_tui.runtime.runtime import Runtime

DIST_INFO = f"dlbricks_tui-{__version__}.dist-info"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_wheel(tmp_path_factory.mktemp("wheel"))


def test_the_wheel_has_the_files_that_run_here(wheel: Path, tmp_path: Path) -> None:
    ZipFile(wheel).extractall(tmp_path)
    unpacked = {name: tmp_path / name for name in own_files()}
    assert content_of(unpacked) == content_of(own_files())
    assert {"dlbricks_tui/fleet/setting_up/own_wheel.py", "dlbricks_tui/sample_models/manifest.json"} <= unpacked.keys()


def test_the_record_names_each_file_with_its_hash(wheel: Path) -> None:
    with ZipFile(wheel) as opened:
        rows = {
            name: digest for name, digest, _ in csv.reader(opened.read(f"{DIST_INFO}/RECORD").decode().splitlines())
        }
        assert rows.keys() == set(opened.namelist())
        for name, digest in rows.items():
            if digest:
                found = base64.urlsafe_b64encode(hashlib.sha256(opened.read(name)).digest()).decode().rstrip("=")
                assert digest == f"sha256={found}", name


def test_the_metadata_has_the_command_and_the_extras(wheel: Path) -> None:
    with ZipFile(wheel) as opened:
        described = message_from_bytes(opened.read(f"{DIST_INFO}/METADATA"))
        assert "dlbricks = dlbricks_tui.__main__:main" in opened.read(f"{DIST_INFO}/entry_points.txt").decode()
    assert described["Version"] == __version__
    assert {"fleet", "openvino"} <= set(described.get_all("Provides-Extra", []))


def test_equal_content_makes_an_equal_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = dict(list(own_files().items())[:5])
    monkeypatch.setattr(own_wheel, "own_files", lambda: few)
    first = write_wheel(tmp_path).read_bytes()
    assert write_wheel(tmp_path).read_bytes() == first


def test_hosts_need_the_versions_of_the_frameworks_here_and_their_extras() -> None:
    version = metadata.version("openvino")
    needed = wanted([Runtime("default-openvino", "", "openvino", version, "3.11")])
    packages = {it.name: it for it in needed.packages}
    assert packages["openvino"].version == version and packages["openvino"].pythons
    assert "platform_machine == 'x86_64'" in packages["openvino"].condition.replace('"', "'")
    assert packages["distributed"].version == metadata.version("distributed")
    assert (needed.extras, needed.frameworks) == (("fleet", "openvino"), ("openvino",))


def test_a_framework_of_another_interpreter_is_wanted_in_its_version() -> None:
    needed = wanted([Runtime("old", "/old/python", "onnxruntime", "1.20.1", "3.11")])
    (found,) = [it for it in needed.packages if it.name == "onnxruntime"]
    # Which Pythons that version is made for is not known here.
    assert (found.version, found.pythons) == ("1.20.1", "")


def test_a_dlbricks_that_was_never_installed_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(own_wheel, "DISTRIBUTION", "dlbricks-tui-of-nobody")
    with pytest.raises(FleetError, match=r"never installed.*pip install"):
        write_wheel(tmp_path)


def test_the_metadata_of_another_version_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("dlbricks_tui.__version__", "0.0.1")
    with pytest.raises(FleetError, match="another version was installed here"):
        write_wheel(tmp_path)
