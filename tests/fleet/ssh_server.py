"""An SSH server on this machine's loopback, in a thread: commands run in a shell here, with another home folder."""

import asyncio
import os
import signal
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import asyncssh

from dlbricks_tui.fleet.request import HostEntry
from dlbricks_tui.fleet.ssh import SshConnection, connected

_T = TypeVar("_T")
USER = "someone"


@dataclass
class Person:
    """A user of SSH: a home folder with a key, known hosts and a configuration."""

    home: Path
    key: Path = field(init=False)

    def __post_init__(self) -> None:
        folder = self.home / ".ssh"
        folder.mkdir(mode=0o700, parents=True)
        self.key = folder / "id_ed25519"
        private = asyncssh.generate_private_key("ssh-ed25519")
        private.write_private_key(str(self.key))
        self.key.chmod(0o600)
        private.write_public_key(f"{self.key}.pub")

    def trusts(self, server: "SshServer") -> None:
        """Add the key of a server to the known hosts."""
        public = server.host_key.export_public_key().decode().strip()
        with (self.home / ".ssh" / "known_hosts").open("a") as file:
            file.write(f"[127.0.0.1]:{server.port} {public}\n")

    def configure(self, text: str) -> None:
        """Write the configuration."""
        (self.home / ".ssh" / "config").write_text(text)


class SshServer(asyncssh.SSHServer):
    """A server that lets one key in."""

    def __init__(self, home: Path, authorized: Path, variables: Mapping[str, str], *, forwards: bool = True) -> None:
        self.host_key = asyncssh.generate_private_key("ssh-ed25519")
        self.home = home
        self.port = 0
        self.commands: list[str] = []
        # The processes of all commands.
        self.pids: list[int] = []
        self.connections: list[asyncssh.SSHServerConnection] = []
        self.forwards = forwards
        self._authorized = authorized
        self._variables = variables
        self._loop = asyncio.new_event_loop()
        # So many connections are ended before they log in, without a word.
        self.refusals = 0
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._run(self._listen())

    def stop(self) -> None:
        self._run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def drop(self) -> None:
        """Cut all connections, without a word."""
        self._run(self._drop())

    def entry(self, **options: Any) -> HostEntry:
        """Return this server as a host of a fleet."""
        given = {"name": "h", "address": "127.0.0.1", "port": self.port, "user": USER, "folder": str(self.home)}
        return HostEntry(**{**given, **options})

    def _run(self, wanted: Coroutine[Any, Any, object]) -> None:
        asyncio.run_coroutine_threadsafe(wanted, self._loop).result(60)

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self.connections.append(conn)
        if self.refusals:
            self.refusals -= 1
            conn.abort()

    def connection_requested(self, dest_host: str, dest_port: int, orig_host: str, orig_port: int) -> bool:
        return self.forwards

    def server_requested(self, listen_host: str, listen_port: int) -> bool:
        return self.forwards

    async def _listen(self) -> None:
        self._acceptor = await asyncssh.listen(
            "127.0.0.1",
            self.port,
            server_factory=lambda: self,
            server_host_keys=[self.host_key],
            authorized_client_keys=str(self._authorized),
            process_factory=self._command,
            encoding=None,
        )
        self.port = self._acceptor.get_port()

    async def _drop(self) -> None:
        connections, self.connections = self.connections, []
        for connection in connections:
            connection.abort()
        for connection in connections:
            await connection.wait_closed()

    async def _stop(self) -> None:
        self._acceptor.close()
        await self._drop()
        for pid in self.pids:
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        if others:
            await asyncio.wait(others, timeout=1)

    async def _command(self, process: "asyncssh.SSHServerProcess[bytes]") -> None:
        assert process.command is not None
        self.commands.append(process.command)
        started = await asyncio.create_subprocess_exec(
            *("sh", "-c", process.command),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=self.home,
            env=dict(self._variables) | {"HOME": str(self.home)},
            start_new_session=True,
        )
        self.pids.append(started.pid)
        given = asyncio.ensure_future(_pump(process.stdin, started.stdin))
        await asyncio.gather(_pump(started.stdout, process.stdout), _pump(started.stderr, process.stderr))
        status = await started.wait()
        with suppress(OSError, asyncssh.Error):
            process.exit(status)
        await given


async def _pump(source: Any, target: Any) -> None:
    """Copy bytes until the source ends; the input of a command ends with its connection, as with sshd.

    A source is read to its end without a target, too: asyncio closes a process once its output was read.
    """
    try:
        while chunk := await source.read(1 << 16):
            with suppress(OSError, asyncssh.Error):
                target.write(chunk)
                await target.drain()
    except (OSError, asyncssh.Error):
        pass
    finally:
        if isinstance(target, asyncio.StreamWriter):
            target.close()


@contextmanager
def served(server: SshServer) -> Iterator[SshServer]:
    """Run a server."""
    server.start()
    try:
        yield server
    finally:
        server.stop()


def on_host(entry: HostEntry, do: Callable[[SshConnection], Awaitable[_T]]) -> _T:
    """Return what is done with a connection to a host."""

    async def whole() -> _T:
        async with connected(entry) as connection:
            return await do(connection)

    return asyncio.run(whole())


def is_alive(pid: int) -> bool:
    """Return whether a process runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
