"""This machine as a host of a fleet: commands run in a shell here, with another home folder."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from dlbricks_tui.fleet.engine.ssh import Connect, Finished, SshConnection
from dlbricks_tui.fleet.errors import FleetError
from dlbricks_tui.fleet.request import HostEntry
from tests.fleet.facts import hasty


@dataclass
class LocalHost(SshConnection):
    """A connection to a host that is this machine; it keeps what was run and sent."""

    home: Path
    variables: Mapping[str, str] = field(default_factory=dict)
    commands: list[str] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)

    async def run(self, command: str, given: bytes | Iterable[bytes] = b"", *, seconds: float | None) -> Finished:
        self.commands.append(command)
        process = await asyncio.create_subprocess_shell(
            command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=self.home,
            env={**os.environ, "HOME": str(self.home), **self.variables},
        )
        assert isinstance(given, bytes)
        out, err = await asyncio.wait_for(process.communicate(hasty(given)), seconds)
        assert process.returncode is not None
        return Finished(process.returncode, out, err)

    async def send(self, source: Path, target: str) -> None:
        self.sent.append(target)
        shutil.copyfile(source, target)


def connecting(hosts: Mapping[str, SshConnection]) -> Connect:
    """Return how connections to these hosts are opened, by name; no other host can be reached."""

    @asynccontextmanager
    async def connect(host: HostEntry) -> AsyncIterator[SshConnection]:
        if host.name not in hosts:
            raise FleetError(f"{host.name} cannot be reached: no route to host; is it running?")
        yield hosts[host.name]

    return connect
