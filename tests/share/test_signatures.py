"""Signatures by the real ssh-keygen, and by minisign where it is installed; a fake one stands in elsewhere."""

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dlbricks_tui.folders import DataFolder
from dlbricks_tui.share import signatures
from dlbricks_tui.share.errors import SignatureError
from dlbricks_tui.share.signatures import export_signed, signature_beside, signers_of, verified
from tests.share.signing import allow, ssh_key

CONTENT = b"latencies\n"
# Knows one key, signs by repeating the content, and has the files and options of minisign.
FAKE_MINISIGN = f"""#!{sys.executable}
import base64, hashlib, sys
options = dict(zip(sys.argv[2::1], sys.argv[3::1]))
key_id = b"EDkeyident"
content = open(options["-m"], "rb").read()
proof = base64.b64encode(key_id + hashlib.sha512(content).digest()).decode()
if sys.argv[1] == "-S":
    open(options["-x"], "w").write(f"untrusted comment: fake\\n{{proof}}\\n")
else:
    sys.exit(open(options["-x"]).read().split("\\n")[1] != proof)
"""


@pytest.fixture
def data(tmp_path: Path) -> DataFolder:
    (tmp_path / "data").mkdir()
    return DataFolder(tmp_path / "data")


def signed_file(folder: Path, key: Path) -> Path:
    file = folder / "day.json"
    assert export_signed(file, key, lambda path: path.write_bytes(CONTENT))[0] == len(CONTENT)
    return file


@pytest.fixture
def signed(tmp_path: Path, data: DataFolder) -> Path:
    """A file that was signed by a key that is trusted."""
    key = ssh_key(tmp_path / "ann")
    allow(data, "ann@example.org", key)
    return signed_file(tmp_path, key)


def signer_of(file: Path, data: DataFolder, *others: Path) -> str:
    """Return the signer of a file, after a check that the verified bytes are the file's."""
    signature = signature_beside(file)
    assert signature is not None
    with (
        file.open("rb") as opened,
        verified(file, opened, signature, signers_of(data, others)) as (content, signer),
    ):
        assert content.read() == file.read_bytes()
        return signer


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(SignatureError) as refused:
        call()
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_a_file_is_signed_and_its_signer_known(tmp_path: Path, data: DataFolder, signed: Path) -> None:
    assert sorted(it.name for it in tmp_path.iterdir()) == ["ann", "ann.pub", "data", "day.json", "day.json.sig"]
    assert signer_of(signed, data) == "ann@example.org"
    # As `git verify-commit` and others do it, without dlbricks.
    asked = ["-f", str(data.allowed_signers), "-I", "ann@example.org", "-n", "dlbricks-results", "-s", f"{signed}.sig"]
    with signed.open("rb") as content:
        subprocess.run(["ssh-keygen", "-Y", "verify", *asked], stdin=content, check=True, capture_output=True)


def test_a_file_by_an_unknown_key_names_the_key_and_the_file_to_add_it_to(tmp_path: Path, data: DataFolder) -> None:
    allow(data, "ann@example.org", ssh_key(tmp_path / "ann"))
    file = signed_file(tmp_path, ssh_key(tmp_path / "bob"))
    told = refusal(lambda: signer_of(file, data))
    assert "is signed by a key that you do not trust, ED25519 key SHA256:" in told
    assert str(data.allowed_signers) in told
    data.allowed_signers.unlink()
    assert "that you do not trust" in refusal(lambda: signer_of(file, data))


def test_every_changed_byte_of_a_file_is_noticed(data: DataFolder, signed: Path) -> None:
    for place in (0, len(CONTENT) // 2, len(CONTENT) - 1):
        changed = bytearray(CONTENT)
        changed[place] ^= 1
        signed.write_bytes(changed)
        assert "was changed after it was signed" in refusal(lambda: signer_of(signed, data))
    signed.write_bytes(CONTENT + b" ")
    assert "was changed after it was signed" in refusal(lambda: signer_of(signed, data))


@pytest.mark.parametrize("damage", [lambda it: it[: len(it) // 2], lambda it: b"", lambda it: b"\x00\xff" * 500])
def test_a_damaged_signature_is_one_line(data: DataFolder, signed: Path, damage: Callable[[bytes], bytes]) -> None:
    signature = Path(f"{signed}.sig")
    signature.write_bytes(damage(signature.read_bytes()))
    assert "the signature of" in refusal(lambda: signer_of(signed, data))


def test_an_endless_signature_and_one_behind_a_link_are_refused(data: DataFolder, signed: Path) -> None:
    signature = Path(f"{signed}.sig")
    with signature.open("wb") as opened:
        opened.truncate(1 << 40)
    assert "unlike any export or signature" in refusal(lambda: signer_of(signed, data))
    signature.unlink()
    signature.symlink_to("/dev/zero")
    assert "cannot read" in refusal(lambda: signer_of(signed, data))


def test_a_signature_for_another_purpose_does_not_count(tmp_path: Path, data: DataFolder) -> None:
    key = ssh_key(tmp_path / "ann")
    allow(data, "ann@example.org", key)
    file = tmp_path / "day.json"
    file.write_bytes(CONTENT)
    asked = ["-f", str(key), "-n", "git", str(file)]
    subprocess.run(["ssh-keygen", "-Y", "sign", *asked], check=True, capture_output=True)
    assert "made for another purpose" in refusal(lambda: signer_of(file, data))


def test_the_verified_bytes_are_read_even_if_the_file_changes_meanwhile(data: DataFolder, signed: Path) -> None:
    with (
        signed.open("rb") as opened,
        verified(signed, opened, Path(f"{signed}.sig"), signers_of(data)) as (content, _),
    ):
        signed.write_bytes(b"forged after it was verified")
        assert content.read() == CONTENT


def test_a_key_with_a_passphrase_signs_with_an_agent_and_not_without_a_terminal(
    tmp_path: Path, data: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = ssh_key(tmp_path / "ann", "secret")
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    monkeypatch.delenv("SSH_ASKPASS", raising=False)
    told = refusal(lambda: signed_file(tmp_path, key))
    assert "nothing was exported" in told and "sign in a terminal, or let ssh-agent hold the key" in told
    assert not (tmp_path / "day.json").exists()
    allow(data, "ann@example.org", key)
    # As ssh-agent does, askpass answers without a terminal.
    askpass = program(tmp_path / "askpass", "#!/bin/sh\necho secret\n")
    monkeypatch.setenv("SSH_ASKPASS", str(askpass))
    monkeypatch.setenv("SSH_ASKPASS_REQUIRE", "force")
    assert signer_of(signed_file(tmp_path, key), data) == "ann@example.org"


def test_a_key_in_an_agent_is_named_by_its_public_part(tmp_path: Path, data: DataFolder) -> None:
    key = ssh_key(tmp_path / "ann")
    allow(data, "ann@example.org", key)
    agent = subprocess.run(
        ["ssh-agent", "sh", "-c", f"ssh-add -q {key} && rm {key} && exec {sys.executable} -c '{SIGN}' {tmp_path}"],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        timeout=60,
        check=False,
    )
    assert agent.returncode == 0, agent.stderr
    assert signer_of(tmp_path / "day.json", data) == "ann@example.org"


SIGN = (
    "import sys; from pathlib import Path; from dlbricks_tui.share.signatures import export_signed; "
    'folder = Path(sys.argv[1]); export_signed(folder / "day.json", folder / "ann.pub", '
    'lambda path: path.write_bytes(b"latencies\\n"))'
)


def test_what_cannot_sign_is_one_line_and_writes_nothing(tmp_path: Path) -> None:
    assert "cannot read the key" in refusal(lambda: signed_file(tmp_path, tmp_path / "none"))
    (tmp_path / "text").write_text("no key\n")
    assert "cannot sign" in refusal(lambda: signed_file(tmp_path, tmp_path / "text"))
    os.mkfifo(tmp_path / "day.json")
    assert "is not a file" in refusal(lambda: signed_file(tmp_path, ssh_key(tmp_path / "ann")))
    (tmp_path / "day.json").unlink()
    assert sorted(it.name for it in tmp_path.iterdir()) == ["ann", "ann.pub", "text"]


def test_a_missing_program_says_what_to_install(
    tmp_path: Path, data: DataFolder, monkeypatch: pytest.MonkeyPatch, signed: Path
) -> None:
    secret = tmp_path / "secret.key"
    secret.write_text("untrusted comment: minisign encrypted secret key\nRWRT\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "ssh-keygen was not found" in (told := refusal(lambda: signer_of(signed, data)))
    assert "apt-get install openssh-client" in told
    assert "minisign was not found" in (told := refusal(lambda: signed_file(tmp_path, secret)))
    assert "apt-get install minisign" in told


def test_a_program_that_hangs_is_ended(
    tmp_path: Path, data: DataFolder, monkeypatch: pytest.MonkeyPatch, signed: Path
) -> None:
    program(tmp_path / "ssh-keygen", "#!/bin/sh\nexec sleep 600\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(signatures, "_VERIFYING_S", 0.05)
    assert "gave no answer" in refusal(lambda: signer_of(signed, data))


def minisign_keys(folder: Path, monkeypatch: pytest.MonkeyPatch, real: bool) -> tuple[Path, Path]:
    """Return a secret key and its public one, of the real minisign or of a fake one that comes first on the path."""
    secret, public = folder / "ann.key", folder / "ann.pub"
    if real:
        asked = ["minisign", "-G", "-W", "-p", str(public), "-s", str(secret)]
        subprocess.run(asked, check=True, capture_output=True)
        return secret, public
    secret.write_text("untrusted comment: minisign encrypted secret key\nRWRT\n")
    public.write_text("untrusted comment: minisign public key\nRURrZXlpZGVudA==\n")
    (folder / "bin").mkdir()
    program(folder / "bin" / "minisign", FAKE_MINISIGN)
    monkeypatch.setenv("PATH", f"{folder / 'bin'}:{os.environ['PATH']}")
    return secret, public


@pytest.mark.parametrize(
    "real",
    [False, pytest.param(True, marks=pytest.mark.skipif(not shutil.which("minisign"), reason="needs minisign"))],
)
def test_minisign_signs_and_verifies_too(
    tmp_path: Path, data: DataFolder, monkeypatch: pytest.MonkeyPatch, real: bool
) -> None:
    secret, public = minisign_keys(tmp_path, monkeypatch, real)
    file = signed_file(tmp_path, secret)
    assert signature_beside(file) == Path(f"{file}.minisig")
    told = refusal(lambda: signer_of(file, data))
    assert "is signed by a key that you do not trust, minisign " in told
    assert signer_of(file, data, public) == "ann"
    data.minisign_keys.mkdir()
    shutil.copy(public, data.minisign_keys / "ann of the team.pub")
    assert signer_of(file, data) == "ann of the team"
    file.write_bytes(CONTENT.upper())
    assert "was changed after it was signed" in refusal(lambda: signer_of(file, data))
    Path(f"{file}.minisig").write_text("untrusted comment: none\n")
    assert "is damaged" in refusal(lambda: signer_of(file, data))


def program(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path
