"""Certificates of a fleet."""

import stat
from pathlib import Path

import pytest

from dlbricks_tui.fleet.certificates import Certificates
from dlbricks_tui.fleet.errors import FleetError

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
    told = str(caught.value)
    assert (
        f"&& scp -p ~/.local/share/dlbricks/certificates/{{authority,host,host-key}}.pem HOST:'{tmp_path}/a host'"
        in told
    )
    assert "init" not in told, "that would make another authority"
    with pytest.raises(FleetError, match="`dlbricks fleet init`"):
        Certificates(tmp_path).for_driver()
    (tmp_path / "file").touch()
    with pytest.raises(FleetError, match="Not a directory"):
        Certificates(tmp_path / "file" / "certificates").create()
    assert certificates.copying_to("there").endswith(
        f"scp -p {certificates.folder}/{{authority,host,host-key}}.pem HOST:there"
    )
