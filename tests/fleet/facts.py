"""Hosts to set up: facts about hosts that lack nothing, and this machine as a host with another home folder."""

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from dlbricks_tui.fleet import host_script
from dlbricks_tui.fleet.doctor import Examination, HostFacts, HostFinding, Wanted, WantedPackage, judged
from dlbricks_tui.fleet.request import FleetError, HostEntry
from dlbricks_tui.fleet.ssh import Connect, Finished, SshConnection

HOST = HostEntry(name="big")
WANTED = Wanted(
    dlbricks="0.2.0",
    content="c" * 64,
    packages=(
        WantedPackage(name="onnxruntime", version="1.32.0", pythons=">=3.11"),
        WantedPackage(name="mxnet", version="1.9.1", condition="python_version < '3.13'"),
        WantedPackage(name="distributed", version="2026.8.0", pythons=">=3.10", condition="extra == 'fleet'"),
    ),
    extras=("fleet",),
    frameworks=("onnxruntime", "mxnet"),
    python="3.11",
)
READY = HostFacts(
    python="3.11.2",
    implementation="CPython",
    executable="/usr/bin/python3",
    others=("python3.11",),
    makes_environments=True,
    operating_system="Linux",
    machine="x86_64",
    libc="glibc 2.36",
    cpu="A processor",
    cores=8,
    vectors="avx2",
    governors=("performance",),
    busy=0.01,
    stolen=0.0,
    free_memory=16 << 30,
    measuring="",
    folder="/home/me/.local/share/dlbricks",
    obstacle="",
    free_disk=100 << 30,
    replaceable=True,
    interpreter="/home/me/.local/share/dlbricks/venvs/3.11.2-0/bin/python",
    environment_python="3.11.2",
    dlbricks="0.2.0",
    content="c" * 64,
    packages={"onnxruntime": "1.32.0", "mxnet": "1.9.1", "distributed": "2026.8.0"},
    # Its clock agrees with any: it began before and ended after.
    clock_first=1 << 45,
    clock_last=0,
)
# A host on which nothing was installed yet.
BARE = replace(READY, interpreter="", environment_python="", dlbricks="", content="", packages={})


def found(facts: HostFacts, subject: str, **changes: Any) -> HostFinding:
    """Return the finding on a subject, with some facts changed."""
    (finding,) = [it for it in judged(HOST, replace(facts, **changes), 0.0, WANTED) if it.subject == subject]
    return finding


def hasty(script: bytes) -> bytes:
    """Return the program that examines a host without the wait in which it watches the processors."""
    waiting = b"\n_SECONDS_TO_WATCH = 0.5\n"
    return script.replace(waiting, b"\n_SECONDS_TO_WATCH = 0.02\n")


def printed(facts: HostFacts) -> bytes:
    """Return the facts as the program on a host prints them."""
    return json.dumps({"format": host_script.FORMAT, "schema": host_script.SCHEMA, **asdict(facts)}).encode()


def refusal(found: Examination) -> str:
    """Return what the doctor tells first of what keeps a host from measuring, and how to cure it."""
    return f"{found.lacks[0].subject}: {found.lacks[0].state}; {found.lacks[0].cure}" if found.lacks else ""


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
