"""The folder of a fleet run, with its request and the commands of its user, and the certificates of a fleet."""

import errno
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from dlbricks_tui.fleet.folder import FleetFolder, create_fleet, read_fleet_request
from dlbricks_tui.fleet.request import FleetError, FleetRequest, HostEntry
from dlbricks_tui.fleet.scheduler import Certificates
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.jobs.folder import State
from dlbricks_tui.settings.measuring import Question
from tests.runs.runs import Site

HOSTS = (HostEntry(name="one", address="10.0.0.1", port=2222), HostEntry(name="two", price_per_hour=0.17))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "data")


@pytest.fixture
def request_(site: Site) -> FleetRequest:
    return FleetRequest(run=site.request(), hosts=HOSTS, question=Question.WHICH_HOST, probe_seconds=5.0)


@pytest.fixture
def folder(site: Site, request_: FleetRequest) -> FleetFolder:
    return create_fleet(request_, site.data)


def test_a_request_reads_as_it_was_written_and_another_is_refused(folder: FleetFolder, request_: FleetRequest) -> None:
    assert read_fleet_request(folder.request_file) == request_
    for text in ("{}", "[", '{"schema": 99}', '{"schema": 1, "run": {}}'):
        folder.request_file.write_text(text)
        with pytest.raises(JobError, match="start a new"):
            read_fleet_request(folder.request_file)


def test_hosts_that_are_added_are_kept_for_later(folder: FleetFolder) -> None:
    folder.add_hosts([HostEntry(name="three", user="me", port=22)])
    with folder.commands_file.open("ab") as file:
        # A torn command loses no other one.
        file.write(b'{"event":"HostAdded","na')
    folder.add_hosts([HostEntry(name="four", price_per_hour=1.5)])
    three, four = folder.added_hosts()
    assert (three, four) == (HostEntry(name="three", user="me", port=22), HostEntry(name="four", price_per_hour=1.5))
    assert folder.host_names() == ("one", "two", "three", "four")
    with pytest.raises(FleetError, match="has a host three already"):
        folder.add_hosts([HostEntry(name="three")])


def test_a_command_for_an_unknown_host_or_a_fleet_run_that_has_ended_is_refused(folder: FleetFolder) -> None:
    with pytest.raises(FleetError, match="has no host 'nine'; its hosts are one, two"):
        folder.command_host("nine", "pause")
    folder.set_state(replace(folder.state(), state=State.FINISHED))
    with pytest.raises(JobError, match=r"fleet run .* is finished: there is nothing to pause"):
        folder.command_host("one", "pause")


pytest.importorskip("distributed")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    found = Certificates(tmp_path / "data" / "certificates")
    found.create()
    return found


def test_keys_can_be_read_by_their_owner_only(certificates: Certificates) -> None:
    assert mode(certificates.folder) == 0o700
    keys = [path for path in certificates.folder.iterdir() if b"PRIVATE KEY" in path.read_bytes()]
    assert {path.name for path in keys} == {"driver-key.pem", "host-key.pem"}
    assert {mode(path) for path in keys} == {0o600}
    # A host gets no key of the driver.
    assert {path.name for path in certificates.of_hosts} == {"authority.pem", "host.pem", "host-key.pem"}


def test_certificates_are_never_replaced(certificates: Certificates) -> None:
    before = certificates.authority.read_bytes()
    assert not certificates.create()
    assert certificates.authority.read_bytes() == before
    (certificates.folder / "driver.pem").unlink()
    with pytest.raises(FleetError, match=r"driver\.pem is missing: copy it from the machine that made the others"):
        certificates.create()
    assert certificates.authority.read_bytes() == before


def test_creation_that_was_interrupted_is_made_good(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    (tmp_path / "driver-key.pem").write_text("half of a key")
    (tmp_path / "driver-key.pem").chmod(0o644)
    certificates.create()
    assert mode(tmp_path / "driver-key.pem") == 0o600
    assert certificates.for_driver().require_encryption


def test_an_authority_for_which_the_disk_has_no_room_is_made_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificates = Certificates(tmp_path)

    def refuse(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch, pytest.raises(FleetError, match="No space left"):
        patch.setattr("dlbricks_tui.files.os.fsync", refuse)
        certificates.create()
    assert certificates.create()


def test_a_key_that_others_can_read_is_refused(certificates: Certificates) -> None:
    key = certificates.folder / "host-key.pem"
    key.chmod(0o640)
    with pytest.raises(FleetError, match=f"chmod 600 {key}"):
        certificates.for_host()


def test_a_host_without_certificates_is_told_to_copy_those_of_its_fleet(
    tmp_path: Path, certificates: Certificates
) -> None:
    with pytest.raises(FleetError) as caught:
        Certificates(tmp_path / "a host").for_host()
    told, files = str(caught.value), "{authority,host,host-key}.pem"
    assert f"&& scp -p ~/.local/share/dlbricks/certificates/{files} HOST:'{tmp_path}/a host'" in told
    assert "init" not in told, "that would make another authority"
    with pytest.raises(FleetError, match="`dlbricks fleet init`"):
        Certificates(tmp_path).for_driver()
    (tmp_path / "file").touch()
    with pytest.raises(FleetError, match="Not a directory"):
        Certificates(tmp_path / "file" / "certificates").create()
    assert certificates.copying_to("there").endswith(f"scp -p {certificates.folder}/{files} HOST:there")
