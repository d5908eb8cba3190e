"""`dlbricks fleet doctor`, `init` and `worker`, with hosts that are examined at once."""

import json
import stat
from collections.abc import Sequence
from pathlib import Path

import pytest

from dlbricks_tui.fleet.request import HostEntry
from dlbricks_tui.fleet.setting_up import doctor
from dlbricks_tui.fleet.setting_up.judging import Examination, FindingVerdict, HostFinding, Readiness
from dlbricks_tui.folders import DataFolder
from tests.answers.validation import faults
from tests.cli.people import Command, one_line

EXAMINED = (
    Examination(
        host="c7i",
        state=Readiness.READY,
        findings=(HostFinding(subject="Python", state="3.11.2", verdict=FindingVerdict.FINE),),
        system="intel-4c-1",
        bricks=12,
    ),
    Examination(
        host="m8g",
        state=Readiness.LACKING,
        findings=(
            HostFinding(subject="Python", state="3.11.2", verdict=FindingVerdict.FINE),
            HostFinding(
                subject="environment", state="none", verdict=FindingVerdict.LACKS, cure="install it", installable=True
            ),
        ),
    ),
)


@pytest.fixture
def data(tmp_path: Path) -> DataFolder:
    return DataFolder(tmp_path / "data")


@pytest.fixture
def hosts(tmp_path: Path) -> Path:
    path = tmp_path / "hosts.toml"
    path.write_text('[[host]]\nname = "c7i"\n\n[[host]]\nname = "m8g"\n')
    return path


@pytest.fixture
def examined(monkeypatch: pytest.MonkeyPatch, without_mxnet: None) -> list[tuple[str, ...]]:
    """The names of the hosts that were examined, of which one lacks its environment."""
    asked: list[tuple[str, ...]] = []

    def examine(entries: Sequence[HostEntry], *_: object) -> tuple[Examination, ...]:
        asked.append(tuple(entry.name for entry in entries))
        return EXAMINED

    monkeypatch.setattr(doctor, "examine_hosts", examine)
    return asked


def test_the_doctor_lists_what_hosts_lack_and_fails(
    dlbricks: Command, examined: list[tuple[str, ...]], hosts: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ("fleet", "doctor", "--hosts", hosts)
    status, out, told = dlbricks(*asked)
    assert (status, examined) == (1, [("c7i", "m8g")])
    assert "as it should be" in out and "install it" in out and "3.11.2" not in out
    assert "`--install` sets up what is missing" in told
    _, everything, _ = dlbricks(*asked, "--all")
    assert everything.count("3.11.2") == 2
    document = json.loads(dlbricks(*asked, "--json")[1])
    with pytest.raises(SystemExit):
        dlbricks("fleet", "doctor", "--json-schema")
    schema = json.loads(capsys.readouterr().out)
    assert faults(document, schema, schema) == []
    found = [(it["host"], it["state"], it["bricks"]) for it in document["hosts"]]
    assert found == [("c7i", "ready", 12), ("m8g", "lacking", None)]
    assert "--wheels is for --install" in one_line(dlbricks(*asked, "--wheels", hosts.parent))


def test_certificates_are_made_once_and_keys_are_private(dlbricks: Command, data: DataFolder) -> None:
    status, out, told = dlbricks("fleet", "init")
    assert (status, out.strip()) == (0, str(data.certificates))
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in data.certificates.iterdir()}
    assert {mode for name, mode in modes.items() if name.endswith("-key.pem")} == {0o600}
    assert "scp -p" in told
    before = {path.name: path.read_bytes() for path in data.certificates.iterdir()}
    status, again, told = dlbricks("fleet", "init")
    assert (status, again) == (0, out)
    assert "are there already" in told
    assert {path.name: path.read_bytes() for path in data.certificates.iterdir()} == before


def test_a_worker_without_certificates_is_refused_in_one_line(dlbricks: Command) -> None:
    told = one_line(dlbricks("fleet", "worker", "tls://127.0.0.1:1", "--name", "a"))
    assert "scp -p" in told
    assert "fleet init" not in told, "that would make another authority"
