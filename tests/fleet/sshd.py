"""Real SSH servers of OpenSSH on this machine's loopback, as processes of this user."""

import os
import shlex
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import asyncssh

# A server that is not installed, such as one unpacked from a package: its path, and the folder of its helpers.
PROGRAM_VARIABLE, HELPERS_VARIABLE = "DLBRICKS_SSHD", "DLBRICKS_SSHD_HELPERS"
MISSING = f"needs OpenSSH's server: sudo apt install openssh-server, or name its program in {PROGRAM_VARIABLE}"
_SECONDS = 20.0


def sshd_program() -> str | None:
    """Return the path of the server; None: there is none."""
    return os.environ.get(PROGRAM_VARIABLE) or shutil.which(
        "sshd", path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin"
    )


@dataclass
class Sshd:
    """A running server."""

    port: int
    host_key: str
    process: subprocess.Popen[bytes]

    def connections(self) -> list[int]:
        """Return the processes of its connections."""
        found = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
        pairs = (line.split() for line in found.splitlines())
        return [int(pid) for pid, parent in pairs if int(parent) == self.process.pid]

    def cut(self) -> None:
        """Kill the processes of all connections."""
        for pid in self.connections():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@contextmanager
def sshd(folder: Path, authorized: Path, *options: str) -> Iterator[Sshd]:
    """Run a server whose files are in a folder."""
    program = sshd_program()
    assert program is not None
    if os.geteuid() == 0:
        # A server of root asks for it.
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    folder.mkdir()
    key = folder / "host_key"
    private = asyncssh.generate_private_key("ssh-ed25519")
    private.write_private_key(str(key))
    key.chmod(0o600)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    helpers = os.environ.get(HELPERS_VARIABLE)
    lines = [
        f"Port {port}",
        "ListenAddress 127.0.0.1",
        f"HostKey {key}",
        f"AuthorizedKeysFile {authorized}",
        "PidFile none",
        "StrictModes no",
        "UsePAM no",
        "PasswordAuthentication no",
        "PermitRootLogin yes",
        *([f"SshdSessionPath {helpers}/sshd-session", f"SshdAuthPath {helpers}/sshd-auth"] if helpers else []),
        *options,
    ]
    config = folder / "sshd_config"
    config.write_text("\n".join(lines) + "\n")
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([program, "-D", "-e", "-f", str(config)], stderr=log, start_new_session=True)
    try:
        give_up = time.monotonic() + _SECONDS
        while not _listens(port):
            assert process.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < give_up
            time.sleep(0.05)
        server = Sshd(port, private.export_public_key().decode().strip(), process)
        yield server
        server.cut()
    finally:
        process.terminate()
        process.wait(_SECONDS)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def agent_with(key: Path, passphrase: str, folder: Path) -> dict[str, str]:
    """Start an agent with a key that has a passphrase, and return its variables."""
    told = subprocess.run(["ssh-agent", "-s"], capture_output=True, text=True, check=True).stdout
    words = (word.partition("=") for word in shlex.split(told.replace(";", " ")))
    variables = {name: value for name, separator, value in words if separator}
    ask = folder / "ask"
    ask.write_text(f"#!/bin/sh\necho {shlex.quote(passphrase)}\n")
    ask.chmod(0o700)
    environment = {
        **os.environ,
        **variables,
        "SSH_ASKPASS": str(ask),
        "SSH_ASKPASS_REQUIRE": "force",
        "DISPLAY": "none",
    }
    subprocess.run(["ssh-add", str(key)], env=environment, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    return variables
