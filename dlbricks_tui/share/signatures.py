"""Sign files of results, and verify who signed them, with the programs `ssh-keygen` and `minisign`.

A signature is a file beside the signed one: FILE.sig by ssh-keygen, FILE.minisig by minisign.
"""

import base64
import binascii
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

from dlbricks_tui.files import open_regular
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.printable import printable
from dlbricks_tui.share.errors import SignatureError

# A signature is made for one purpose: ssh-keygen refuses it for another.
NAMESPACE = "dlbricks-results"
SSH, MINISIGN = ".sig", ".minisig"
_INSTALL = {
    "ssh-keygen": "install OpenSSH 8.2 or newer (Debian: apt-get install openssh-client)",
    "minisign": "install minisign (Debian: apt-get install minisign)",
}
# Files of keys and signatures by minisign begin like this.
_MINISIGN_BEGIN = b"untrusted comment:"
# Enough to type a passphrase or to touch a security key.
_SIGNING_S = 120
_VERIFYING_S = 60
_MOST_BYTES = 1 << 16
_MOST_SIGNED_BYTES = 4 << 30
_CHUNK = 1 << 20
_LONGEST_NAME = 200
_SSH_KEY = re.compile(r"with (.{1,200})$", re.MULTILINE)
# Two bytes name the algorithm, eight the key.
_MINISIGN_KEY = slice(2, 10)


@dataclass(frozen=True, slots=True)
class Signers:
    """The trusted signers: files in OpenSSH's format `allowed_signers`, and public keys of minisign by their names."""

    allowed: tuple[Path, ...] = ()
    minisign: tuple[tuple[str, Path], ...] = ()
    # The file to which a user adds another signer.
    listed_in: Path = Path("allowed_signers")


def signers_of(data: DataFolder, others: Sequence[Path] = ()) -> Signers:
    """Return the signers that the data folder lists, and those of other files."""
    allowed = [data.allowed_signers] if data.allowed_signers.is_file() else []
    keys = sorted(data.minisign_keys.glob("*.pub"))
    for path in others:
        (keys if _begins_like_minisign(path, "signers in") else allowed).append(path)
    return Signers(tuple(allowed), tuple((key.stem, key) for key in keys), data.allowed_signers)


def signature_beside(path: Path) -> Path | None:
    """Return the signature of a file; None if there is none."""
    for ending in (SSH, MINISIGN):
        signature = path.with_name(path.name + ending)
        if os.path.lexists(signature):
            return signature
    return None


def export_signed(path: Path, key: Path, export: Callable[[Path], int]) -> tuple[int, Path]:
    """Write a file and its signature, or neither; return what `export` returns, and the path of the signature."""
    ending = MINISIGN if _begins_like_minisign(key, "key") else SSH
    if path.exists() and not path.is_file():
        raise SignatureError(f"{path} is not a file: a signature needs a file to be beside of")
    try:
        with TemporaryDirectory(dir=path.parent, prefix=".dlbricks-") as folder:
            draft = Path(folder, path.name)
            exported = export(draft)
            _sign(draft, key, ending)
            remove_signatures(path)
            signature = path.with_name(path.name + ending)
            draft.with_name(draft.name + ending).replace(signature)
            draft.replace(path)
    except OSError as error:
        raise SignatureError(f"cannot write {path}: {error.strerror}; nothing was exported") from error
    return exported, signature


def remove_signatures(path: Path) -> None:
    """Remove the signatures of a file that is about to be replaced: they are of its former content."""
    while (signature := signature_beside(path)) is not None:
        signature.unlink(missing_ok=True)


@contextmanager
def verified(path: Path, file: BinaryIO, signature: Path, signers: Signers) -> Iterator[tuple[BinaryIO, str]]:
    """Yield a private copy of an open file whose signature is good, and its signer.

    The copy is what the signature was verified for: nobody can change it in between.
    """
    try:
        with TemporaryDirectory(prefix="dlbricks-") as folder:
            copy, beside = Path(folder, "results"), Path(folder, "signature")
            _copy(path, file, copy, _MOST_SIGNED_BYTES)
            with open_regular(signature, follow_links=False) as signed:
                _copy(signature, signed, beside, _MOST_BYTES)
            verify = _minisign_signer if signature.suffix == MINISIGN else _ssh_signer
            signer = verify(path, copy, beside, signers)
            with copy.open("rb") as content:
                yield content, printable(signer)[:_LONGEST_NAME]
    except OSError as error:
        raise SignatureError(f"cannot read {signature}: {error.strerror}") from error


def _copy(path: Path, source: BinaryIO, target: Path, most: int) -> None:
    source.seek(0)
    copied = 0
    with target.open("xb") as file:
        while chunk := source.read(_CHUNK):
            copied += len(chunk)
            if copied > most:
                raise SignatureError(f"{path} has more than {most:,} bytes, unlike any export or signature")
            file.write(chunk)


def _begins_like_minisign(path: Path, what: str) -> bool:
    try:
        with open_regular(path) as file:
            return file.read(len(_MINISIGN_BEGIN)) == _MINISIGN_BEGIN
    except OSError as error:
        raise SignatureError(f"cannot read the {what} {path}: {error.strerror}") from error


def _sign(file: Path, key: Path, ending: str) -> None:
    signature = file.with_name(file.name + ending)
    key = key.absolute()
    if ending == MINISIGN:
        # A comment of our own: by default minisign's has the file's name.
        made = _run("minisign", ["-S", "-s", str(key), "-m", str(file), "-x", str(signature), "-t", NAMESPACE], None)
    else:
        made = _run("ssh-keygen", ["-Y", "sign", "-f", str(key), "-n", NAMESPACE, str(file)], None)
    if made.returncode != 0 or not signature.is_file():
        reason = _last_line(made.stderr)
        locked = "passphrase" in reason or "get_password" in reason
        cure = "; sign in a terminal, or let ssh-agent hold the key and name its .pub file" if locked else ""
        raise SignatureError(f"nothing was exported, as {key} cannot sign: {reason or 'no reason was given'}{cure}")


def _ssh_signer(path: Path, content: Path, signature: Path, signers: Signers) -> str:
    for allowed in signers.allowed:
        found = _run("ssh-keygen", ["-Y", "find-principals", "-s", str(signature), "-f", str(allowed)], content)
        # A line may exclude names by a mark.
        names = [name for name in found.stdout.split("\n") if name and not name.startswith("!")]
        for name in names if found.returncode == 0 else []:
            asked = ["-Y", "verify", "-f", str(allowed), "-I", name, "-n", NAMESPACE, "-s", str(signature)]
            if _run("ssh-keygen", asked, content).returncode == 0:
                return name
    checked = _run("ssh-keygen", ["-Y", "check-novalidate", "-n", NAMESPACE, "-s", str(signature)], content)
    if checked.returncode != 0:
        raise _broken(path, checked.stderr)
    key = _SSH_KEY.search(checked.stdout)
    raise _unknown(path, key[1] if key else "a key", f"{signers.listed_in} or a file named by --signers")


def _minisign_signer(path: Path, content: Path, signature: Path, signers: Signers) -> str:
    key = _minisign_key(signature)
    if key is None:
        raise _broken(path, "")
    for name, public in signers.minisign:
        if _minisign_key(public) == key:
            asked = ["-V", "-q", "-m", str(content), "-x", str(signature), "-p", str(public.absolute())]
            if _run("minisign", asked, content).returncode == 0:
                return name
            raise _broken(path, "incorrect signature")
    folder = signers.listed_in.with_name("minisign")
    raise _unknown(path, f"minisign {key[::-1].hex().upper()}", f"{folder} as NAME.pub, or a file named by --signers")


def _minisign_key(file: Path) -> bytes | None:
    """Return the id of the key in a signature or a public key of minisign; None if there is none."""
    try:
        with open_regular(file) as opened:
            lines = opened.read(_MOST_BYTES).split(b"\n")
        return base64.b64decode(lines[1], validate=True)[_MINISIGN_KEY] or None
    except (OSError, IndexError, binascii.Error):
        return None


def _broken(path: Path, reason: str) -> SignatureError:
    if "incorrect signature" in reason:
        return SignatureError(f"{path} was changed after it was signed, or its signature was: ask for it again")
    if "namespace" in reason:
        return SignatureError(f"the signature of {path} was made for another purpose than {NAMESPACE!r}")
    return SignatureError(f"the signature of {path} is damaged: ask for it again")


def _unknown(path: Path, key: str, where: str) -> SignatureError:
    return SignatureError(
        f"{path} is signed by a key that you do not trust, {printable(key)}: if you know it is the author's, add it to "
        f"{where}; --ignore-signatures imports it as unsigned"
    )


def _run(program: str, arguments: Sequence[str], content: Path | None) -> "subprocess.CompletedProcess[str]":
    """Run a program on a file as its standard input; without one it may ask on the terminal, if there is one."""
    asks = content is None and sys.stdin is not None and sys.stdin.isatty()
    # minisign writes its questions to standard error, ssh-keygen to the terminal.
    shown = asks and program == "minisign"
    try:
        with Path(os.devnull if content is None else content).open("rb") as stdin:
            return subprocess.run(
                [program, *arguments],
                stdin=None if asks else stdin,
                stdout=2 if shown else subprocess.PIPE,
                stderr=None if shown else subprocess.PIPE,
                env={**os.environ, "LC_ALL": "C"},
                encoding="utf-8",
                errors="replace",
                timeout=_SIGNING_S if content is None else _VERIFYING_S,
                # Without a terminal of ours, a program does not find another one to wait at.
                start_new_session=not asks,
                check=False,
            )
    except FileNotFoundError as error:
        raise SignatureError(f"{program} was not found, which signs and verifies: {_INSTALL[program]}") from error
    except subprocess.TimeoutExpired as error:
        raise SignatureError(f"{program} gave no answer in {error.timeout:.0f} s: is it waiting for a key?") from error
    except OSError as error:
        raise SignatureError(f"{program} cannot be started: {error.strerror}; {_INSTALL[program]}") from error


def _last_line(text: str | None) -> str:
    lines = [line.strip() for line in (text or "").splitlines() if line.strip()]
    return printable(lines[-1])[:_LONGEST_NAME] if lines else ""
