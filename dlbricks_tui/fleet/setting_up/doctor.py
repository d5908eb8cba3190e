"""The doctor of a fleet: one line for each thing that a host lacks or has, with what to do about it."""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence

from dlbricks_tui.fleet.engine.ssh import Connect, Finished, SshConnection, shell_path
from dlbricks_tui.fleet.errors import FleetError, last_line
from dlbricks_tui.fleet.request import USUAL_PYTHON, HostEntry
from dlbricks_tui.fleet.setting_up.host_facts import (
    HostFacts,
    SelfCheck,
    answer_in,
    facts_from,
    facts_script,
    self_check_command,
    self_check_from,
)
from dlbricks_tui.fleet.setting_up.host_script import ENVIRONMENT
from dlbricks_tui.fleet.setting_up.judging import (
    NEWEST_PYTHON,
    OLDEST_PYTHON,
    PYTHONS,
    Examination,
    FindingVerdict,
    HostFinding,
    Readiness,
    Wanted,
    judged,
)
from dlbricks_tui.printable import printable
from dlbricks_tui.runtime.traits import traits_of

# Hosts that are examined at the same time.
_AT_ONCE = 16
_SECONDS_TO_CHECK = 120.0
# Frameworks are imported from a disk that may be slow.
_SECONDS_TO_START = 300.0
_NO_SUCH_COMMAND = (126, 127)
_OTHERS = tuple(f"python3.{minor}" for minor in range(NEWEST_PYTHON[1], OLDEST_PYTHON[1] - 1, -1))
_TOO_OLD = re.compile(r"Python (2|3\.[0-6]\b)")


def examine_hosts(
    hosts: Sequence[HostEntry],
    wanted: Wanted,
    connect: Connect,
    told: Callable[[Examination], None] = lambda _: None,
) -> tuple[Examination, ...]:
    """Examine hosts side by side, and return what was found in their order; `told` gets each one when it is known."""

    async def one(host: HostEntry) -> Examination:
        async with connect(host) as connection:
            return await examine(host, connection, wanted)

    return for_each(hosts, one, told)


def for_each(
    hosts: Sequence[HostEntry],
    treat: Callable[[HostEntry], Awaitable[Examination]],
    told: Callable[[Examination], None],
) -> tuple[Examination, ...]:
    """Treat hosts side by side, some at a time; one that cannot be reached keeps no other one waiting."""

    async def one(host: HostEntry, turn: asyncio.Semaphore) -> Examination:
        async with turn:
            try:
                found = await treat(host)
            except FleetError as error:
                found = unreachable(host, error)
        told(found)
        return found

    async def every() -> Sequence[Examination]:
        turn = asyncio.Semaphore(_AT_ONCE)
        return await asyncio.gather(*(one(host, turn) for host in hosts))

    return tuple(asyncio.run(every()))


async def examine(host: HostEntry, connection: SshConnection, wanted: Wanted) -> Examination:
    """Examine one host; FleetError if the connection ends."""
    sent = time.time()
    asked = await connection.run(
        f"{shell_path(host.python_there)} -I -",
        facts_script(host.folder_there, [it.name for it in wanted.packages]),
        seconds=_SECONDS_TO_CHECK,
    )
    received = time.time()
    reached = HostFinding(subject="reachable", state="yes", verdict=FindingVerdict.FINE)
    if asked.status:
        return _examination(host, (reached, await _no_python(host, connection, asked, wanted)))
    facts = facts_from(asked.out)
    found = (reached, *judged(host, facts, _least_offset(facts, sent, received), wanted))
    if any(it.installable for it in found):
        return _examination(host, found, facts)
    asked = await connection.run(
        self_check_command(facts.interpreter, facts.folder, wanted.frameworks), seconds=_SECONDS_TO_START
    )
    if asked.status:
        return _examination(host, (*found, _not_started(facts, asked)), facts)
    checked = self_check_from(answer_in(asked.out))
    return _examination(host, (*found, *_frameworks(checked, facts, wanted)), facts, checked)


def unreachable(host: HostEntry, error: FleetError) -> Examination:
    """Return what is known of a host that cannot be reached."""
    finding = HostFinding(subject="reachable", state=printable(str(error)), verdict=FindingVerdict.LACKS)
    return Examination(host=host.name, state=Readiness.UNREACHABLE, findings=(finding,))


def _examination(
    host: HostEntry,
    findings: tuple[HostFinding, ...],
    facts: HostFacts | None = None,
    checked: SelfCheck | None = None,
) -> Examination:
    lacking = any(it.verdict is FindingVerdict.LACKS for it in findings)
    return Examination(
        host=host.name,
        state=Readiness.LACKING if lacking else Readiness.READY,
        findings=findings,
        system=checked.system if checked else "",
        system_name=checked.system_name if checked else facts.cpu if facts else "",
        bricks=checked.bricks if checked else None,
        interpreter=facts.interpreter if facts else "",
    )


def _least_offset(facts: HostFacts, sent: float, received: float) -> float:
    """Return the least by which the clock there differs, in seconds; the way there and back takes unknown times."""
    least, most = facts.clock_last / 1000 - received, facts.clock_first / 1000 - sent
    return least if least > 0 else min(most, 0.0)


async def _no_python(host: HostEntry, connection: SshConnection, asked: Finished, wanted: Wanted) -> HostFinding:
    """Return why the interpreter of a host cannot run the doctor, and what to do."""
    python = host.python_there
    version = await connection.run(f"{shell_path(python)} -V", seconds=_SECONDS_TO_CHECK)
    # Earlier versions than 3.4 tell their version as an error.
    told = last_line(version.out or version.err)
    if version.status in _NO_SUCH_COMMAND:
        state = f"no {python} there"
    elif version.status or _TOO_OLD.match(told):
        state = f"{python} is {told or 'no interpreter'}, and {PYTHONS} are needed"
    else:
        state = f"{python} cannot run the doctor: {last_line(asked.err) or f'status {asked.status}'}"
    commands = "; ".join(f"command -v {name}" for name in _OTHERS)
    found = await connection.run(f"sh -c '{commands}'", seconds=_SECONDS_TO_CHECK)
    names = {line.rpartition("/")[2] for line in found.out.decode(errors="replace").split()}
    if fits := [name for name in _OTHERS if name in names]:
        usual = f"python{wanted.python}"
        cure = f'write python = "{usual if usual in fits else fits[0]}" for it in the hosts file'
    else:
        cure = f"install {PYTHONS} there (such as sudo apt install python3 python3-venv)"
        cure += "" if python == USUAL_PYTHON else ", or correct python in the hosts file"
    return HostFinding(subject="Python", state=state, verdict=FindingVerdict.LACKS, cure=cure, blocks_installing=True)


def _not_started(facts: HostFacts, asked: Finished) -> HostFinding:
    reason = last_line(asked.err) or f"it ends with status {asked.status}"
    cure = (
        f"remove {facts.folder}/{ENVIRONMENT} there, and let dlbricks fleet doctor --hosts FILE --install make it again"
    )
    return HostFinding(subject="dlbricks", state=f"does not start: {reason}", verdict=FindingVerdict.LACKS, cure=cure)


def _frameworks(checked: SelfCheck, facts: HostFacts, wanted: Wanted) -> Iterator[HostFinding]:
    """Yield a finding for each framework that has to start."""
    for framework in wanted.frameworks:
        subject = traits_of(framework).title
        if reason := checked.failures.get(framework):
            cure = f"{facts.interpreter} -m dlbricks_tui runtimes check says more there"
            yield HostFinding(
                subject=subject, state=f"does not start: {reason}", verdict=FindingVerdict.LACKS, cure=cure
            )
        else:
            yield HostFinding(subject=subject, state="starts", verdict=FindingVerdict.FINE)
