"""A user of SSH, and the certificates of a fleet."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dlbricks_tui.fleet.scheduler import Certificates
from tests.fleet.ssh_server import Person, SshServer, served


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Person:
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return Person(tmp_path / "person")


@pytest.fixture
def unknown_server(person: Person, tmp_path: Path) -> Iterator[SshServer]:
    """A server that lets the person in, who does not know its key."""
    home = tmp_path / "host"
    (home / "venv" / "bin").mkdir(parents=True)
    with served(SshServer(home, Path(f"{person.key}.pub"), {"PATH": os.environ["PATH"]})) as server:
        yield server


@pytest.fixture
def server(person: Person, unknown_server: SshServer) -> SshServer:
    """A server that the person trusts."""
    person.trusts(unknown_server)
    return unknown_server


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    made = Certificates(tmp_path_factory.mktemp("fleet") / "certificates")
    made.create()
    return made
