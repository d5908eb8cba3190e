"""Connections to hosts over SSH, made like those of OpenSSH in batch mode.

The user's keys, agent, known hosts and `~/.ssh/config` apply, and the hosts file goes first. Nothing is ever asked for.
The keys of servers are always checked, whatever the configuration says.
"""

import asyncio
import re
import shlex
import socket
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TypeAlias

import asyncssh

from dlbricks_tui.fleet.request import FleetError, HostEntry, first_line, last_line
from dlbricks_tui.fleet.scheduler import LOOPBACK
from dlbricks_tui.printable import printable

SECONDS_TO_CONNECT = 30.0
SECONDS_TO_CLOSE = 5.0
# A host that is slower is left to the fleet run, which waits for it.
_SECONDS_TO_CHECK = 5.0
# A connection whose server is silent for three of them is lost.
_SECONDS_BETWEEN_KEEPALIVES = 10
_KEEPALIVES = 3
_PORT = 22
_MOST_JUMPS = 8
_CHUNK_BYTES = 1 << 17
_NO_JUMP = "none"
# As OpenSSH reads them: an address with colons is in brackets.
_JUMP = re.compile(r"(?:ssh://)?(?:(.+)@)?(\[.+\]|[^:/]+)(?::([0-9]+))?/?")
# The files with the keys of known servers, by option, as OpenSSH reads them.
_KNOWN_HOSTS = (
    ("UserKnownHostsFile", ("~/.ssh/known_hosts", "~/.ssh/known_hosts2")),
    ("GlobalKnownHostsFile", ("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")),
)
# No command of the doctor prints more.
_MOST_OUTPUT_BYTES = 1 << 20


class SshError(FleetError):
    """A host cannot be reached now; another try may succeed."""


class HostRefusedError(FleetError):
    """A host cannot be reached until the user changes something."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A command that has ended on a host: its exit status and what it printed."""

    status: int
    out: bytes
    err: bytes


@asynccontextmanager
async def connected(entry: HostEntry) -> AsyncIterator["SshConnection"]:
    """Open a connection to a host, and close it afterwards.

    Raise SshError or HostRefusedError with one line that says what to do.
    """
    hop = replace(entry, address=(entry.address or entry.name).strip("[]"))
    async with AsyncExitStack() as opened:
        try:
            connection = await asyncio.wait_for(_connect(hop, None, opened, 0), SECONDS_TO_CONNECT)
        except asyncio.TimeoutError:
            raise SshError(f"{_named(hop)} did not answer within {SECONDS_TO_CONNECT:.0f} seconds") from None
        yield connection


def check_hosts(hosts: Sequence[HostEntry], *, needs_one: bool = False) -> None:
    """Connect to hosts once, side by side; raise HostRefusedError if SSH refuses one, for example its key.

    With `needs_one`, raise it also if none of them can be reached.
    """
    if not hosts:
        return
    # In a thread: the caller may have an event loop, as in a notebook.
    with ThreadPoolExecutor(1) as thread:
        refused = thread.submit(lambda: asyncio.run(_refusals(hosts, needs_one))).result()
    if refused:
        name, error = refused[0]
        more = f" (and {len(refused) - 1} more: `dlbricks fleet doctor --hosts FILE`)" if len(refused) > 1 else ""
        raise HostRefusedError(f"{name}: {error}{more}")


async def _refusals(hosts: Sequence[HostEntry], needs_one: bool) -> Sequence[tuple[str, FleetError]]:
    async def attempt(host: HostEntry) -> None:
        async with connected(host):
            pass

    attempts = [asyncio.create_task(attempt(host)) for host in hosts]
    # Each attempt ends after so long by itself.
    await asyncio.wait(attempts, timeout=SECONDS_TO_CONNECT + 1 if needs_one else _SECONDS_TO_CHECK)
    for late in attempts:
        late.cancel()
    ends = await asyncio.gather(*attempts, return_exceptions=True)
    lacks_all = needs_one and all(isinstance(end, FleetError) for end in ends)
    kind = FleetError if lacks_all else HostRefusedError
    return [(host.name, end) for host, end in zip(hosts, ends, strict=True) if isinstance(end, kind)]


async def _connect(
    hop: HostEntry, via: asyncssh.SSHClientConnection | None, opened: AsyncExitStack, depth: int
) -> "SshConnection":
    """Connect to a hop, and before to the hops in front of it; `opened` closes all of them."""
    connection = SshConnection()
    try:
        # Without keys: this one is only asked for the user's configuration.
        asked = asyncssh.SSHClientConnectionOptions(
            config=(), host=hop.address, port=hop.port or (), username=hop.user or (), client_keys=None
        )
        jumps = [] if via else _jumps(hop, asked.tunnel)
        if depth + len(jumps) > _MOST_JUMPS:
            raise HostRefusedError(f"{_named(hop)} has more than {_MOST_JUMPS} jump hosts: correct ProxyJump")
        for jump in jumps:
            via = (await _connect(jump, via, opened, depth + 1)).ssh
        files = [_existing(asked.config.get(option) or usual) for option, usual in _KNOWN_HOSTS]
        # OpenSSH, too, passes over keys that do not exist; without any, the usual ones are tried.
        keys = [hop.key] if hop.key else _existing(asked.config.get("IdentityFile"))
        # An agent with many keys is asked for this one only.
        identities = _existing([f"{hop.key}.pub"]) if hop.key else []
        log_in = partial(
            asyncssh.connect,
            hop.address,
            port=hop.port or (),
            username=hop.user or (),
            tunnel=via,
            client_factory=lambda: connection,
            # The host key is always checked: no setting turns that off.
            known_hosts=[file for found in files for file in found],
            client_keys=keys or (),
            ignore_encrypted=True,
            agent_identities=identities or (),
            password_auth=False,
            kbdint_auth=False,
            agent_forwarding=False,
            x11_forwarding=False,
            login_timeout=SECONDS_TO_CONNECT,
            keepalive_interval=_SECONDS_BETWEEN_KEEPALIVES,
            keepalive_count_max=_KEEPALIVES,
        )
        try:
            await log_in()
        except (asyncssh.ConnectionLost, ConnectionResetError):
            # A busy sshd ends some connections without a word (MaxStartups).
            await log_in()
    except FleetError:
        raise
    # asyncssh raises many kinds of errors, such as those of a configuration file that cannot be read.
    except (asyncssh.Error, OSError, ValueError) as error:
        raise _fault(hop, error, connection.fingerprint) from error
    opened.push_async_callback(connection.close)
    return connection


def _jumps(hop: HostEntry, configured: object) -> list[HostEntry]:
    """Return the jump hosts of a hop, the first one first; they have no names."""
    found = hop.jump or (configured if isinstance(configured, str) else "")
    if not found or found.lower() == _NO_JUMP:
        return []
    jumps: list[HostEntry] = []
    for text in map(str.strip, found.split(",")):
        parts = _JUMP.fullmatch(text)
        user, address, port = parts.groups("") if parts else ("", text, "")
        before = ",".join(it.strip() for it in found.split(",")[: len(jumps)])
        number = int(port) if port else None
        jumps.append(HostEntry(name="", address=address.strip("[]"), port=number, user=user, jump=before))
    return jumps


def _existing(names: object) -> list[str]:
    """Return the files of these names that exist."""
    paths = [Path(str(name)).expanduser() for name in names] if isinstance(names, list | tuple) else []
    return [str(path) for path in paths if path.is_file()]


def _fault(hop: HostEntry, error: Exception, fingerprint: str) -> FleetError:
    """Return an error of asyncssh as one line that says what to do."""
    name = _named(hop)
    # The command that connects to it, once, as a user would type it.
    options = [(it, str(value)) for it, value in (("-p", hop.port), ("-i", hop.key), ("-J", hop.jump)) if value]
    place = f"{hop.user}@{hop.address}" if hop.user else hop.address
    command = shlex.join(["ssh", *chain(*options), place, "true"])
    match error:
        case asyncssh.HostKeyNotVerifiable() if "revoked" in str(error):
            return HostRefusedError(f"{name} has a key that is marked as revoked in known_hosts; check this host")
        case asyncssh.HostKeyNotVerifiable():
            seen = f" (it shows {fingerprint})" if fingerprint else ""
            return HostRefusedError(
                f"{name} is not in known_hosts with this key{seen}: run `{command}` once, and compare the key"
            )
        case asyncssh.KeyExchangeFailed() if "host key" in str(error):
            return HostRefusedError(
                f"{name} has none of the keys that known_hosts has for it: run `{command}`, and check this host"
            )
        case asyncssh.PermissionDenied():
            cure = "correct user and key in the hosts file"
            if hop.key and _is_encrypted(hop.key):
                cure = f"{hop.key} has a passphrase: give it to your agent with `ssh-add {shlex.quote(hop.key)}`"
            elif not hop.key:
                cure = f"name user and key in the hosts file, or try `{command}`; keys with a passphrase need ssh-add"
            whom = f" for {hop.user}" if hop.user else ""
            return HostRefusedError(f"{name} accepts none of your keys{whom}: {cure}")
        case asyncssh.ConfigParseError():
            return HostRefusedError(f"your SSH configuration cannot be read: {first_line(error)}")
        case asyncssh.ChannelOpenError():
            return SshError(f"{name} cannot be reached from the jump host: {first_line(error)}")
        case asyncssh.DisconnectError():
            return SshError(f"{name} ended the connection: {first_line(error)}")
        case socket.gaierror():
            return SshError(f"{name} has no address ({first_line(error)}): correct address in the hosts file")
        case ConnectionRefusedError():
            return SshError(f"{name} is there, but no SSH server answers: start it, or correct port in the hosts file")
        case OSError() if error.filename:
            return HostRefusedError(f"cannot read {printable(str(error.filename))}: {error.strerror}")
        case OSError():
            return SshError(f"{name} cannot be reached: {error.strerror or first_line(error)}")
    return HostRefusedError(f"{name}: {first_line(error)}; correct the hosts file or your SSH configuration")


def _is_encrypted(key: str) -> bool:
    try:
        asyncssh.read_private_key(key)
    except asyncssh.KeyImportError as error:
        return str(error).startswith("Passphrase")
    except OSError:
        return False
    return False


def _named(hop: HostEntry) -> str:
    place = hop.address if hop.port in (None, _PORT) else f"{hop.address} port {hop.port}"
    return place if hop.name else f"jump host {place}"


class SshConnection(asyncssh.SSHClient):
    """An open connection to one host. All methods raise FleetError with one line that says what to do."""

    ssh: asyncssh.SSHClientConnection
    # That of the server's key, if the key is not known.
    fingerprint = ""
    # Why the connection has ended.
    fault = "its SSH server closed it"

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        self.ssh = conn

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        self.fingerprint = key.get_fingerprint()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.fault = first_line(exc) if exc else self.fault

    @property
    def is_closed(self) -> bool:
        """The connection has ended."""
        return self.ssh.is_closed()

    async def close(self) -> None:
        self.ssh.close()
        with suppress(asyncio.TimeoutError, asyncssh.Error, OSError):
            await asyncio.wait_for(self.ssh.wait_closed(), SECONDS_TO_CLOSE)

    async def run(
        self,
        command: str,
        given: bytes | Iterable[bytes] = b"",
        *,
        seconds: float | None,
    ) -> Finished:
        """Run a command line in the user's shell there, with `given` as its standard input.

        A command that runs longer or prints more is ended, and raises SshError.
        """
        process = await self.start(command)
        try:
            chunks = (given,) if isinstance(given, bytes) else given
            talk = (_feed(process, chunks), _all(process.stdout), _all(process.stderr))
            _, out, err = await asyncio.wait_for(asyncio.gather(*talk), seconds)
            await asyncio.wait_for(process.wait_closed(), SECONDS_TO_CLOSE)
        except asyncio.TimeoutError:
            limit = f"{seconds or SECONDS_TO_CLOSE:.0f} seconds"
            raise SshError(f"a command takes longer than {limit} there: {printable(command)[:60]}") from None
        except (asyncssh.Error, OSError) as error:
            raise SshError(f"the connection ended: {first_line(error)}") from error
        finally:
            if process.exit_status is None:
                with suppress(asyncssh.Error, OSError):
                    process.kill()
            process.close()
        if process.exit_status is None and self.is_closed:
            raise SshError(f"the connection ended: {self.fault}")
        return Finished(-1 if process.exit_status is None else process.exit_status, out, err)

    async def send(self, source: Path, target: str) -> None:
        """Copy a file of this machine to an absolute path there, readable by the user only.

        The command `cat` writes it: not all servers have SFTP, and its messages tell when a disk is full.
        """
        writing = shlex.join(["sh", "-c", 'umask 077 && cat > "$1"', "sh", target])
        with source.open("rb") as file:
            done = await self.run(writing, iter(lambda: file.read(_CHUNK_BYTES), b""), seconds=None)
        if done.status != 0:
            reason = last_line(done.err) or "the connection ended"
            raise SshError(f"{source.name} cannot be written to {target}: {reason}")

    async def start(self, command: str) -> "asyncssh.SSHClientProcess[bytes]":
        """Start a command in the user's shell there."""
        try:
            return await self.ssh.create_process(command, encoding=None, request_pty=False)
        except (asyncssh.Error, OSError) as error:
            raise SshError(f"its SSH server starts no command: {first_line(error)}") from error

    async def forward_here(self, port_there: int) -> int:
        """Forward a port of this machine's loopback to one of the host's loopback, and return it."""
        try:
            listener = await self.ssh.forward_local_port(LOOPBACK, 0, LOOPBACK, port_there)
        except OSError as error:
            raise SshError(f"no port of this machine can be forwarded: {first_line(error)}") from error
        return listener.get_port()

    async def forward_there(self, port_here: int) -> int:
        """Forward a port of the host's loopback to one of this machine's loopback, and return it."""
        try:
            listener = await self.ssh.forward_remote_port(LOOPBACK, 0, LOOPBACK, port_here)
        except (asyncssh.ChannelListenError, asyncssh.Error, OSError) as error:
            if self.is_closed:
                raise SshError(f"the connection ended: {self.fault}") from error
            raise HostRefusedError(
                "its SSH server forwards no ports: set AllowTcpForwarding yes (and no DisableForwarding) in its "
                f"sshd_config ({first_line(error)})"
            ) from error
        return listener.get_port()


async def _feed(process: "asyncssh.SSHClientProcess[bytes]", chunks: Iterable[bytes]) -> None:
    # A command that ends early reads no more, and says why itself.
    with suppress(BrokenPipeError, ConnectionResetError):
        for chunk in chunks:
            process.stdin.write(chunk)
            await process.stdin.drain()
        process.stdin.write_eof()


async def _all(reader: "asyncssh.SSHReader[bytes]") -> bytes:
    """Return everything that a command prints."""
    found = bytearray()
    while chunk := await reader.read(_CHUNK_BYTES):
        found += chunk
        if len(found) > _MOST_OUTPUT_BYTES:
            raise SshError(f"a command prints more than {_MOST_OUTPUT_BYTES / 2**20:.0f} MiB there; check this host")
    return bytes(found)


# Opens a connection to a host, such as `connected`.
Connect: TypeAlias = Callable[[HostEntry], AbstractAsyncContextManager[SshConnection]]
