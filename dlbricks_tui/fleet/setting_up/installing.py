"""Set up the hosts of a fleet: send this dlbricks as a wheel, and make the environment that it runs in."""

import re
import secrets
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from dlbricks_tui.fleet.errors import FleetError
from dlbricks_tui.fleet.hosts import HostEntry
from dlbricks_tui.fleet.setting_up import host_install
from dlbricks_tui.fleet.setting_up.doctor import examine, for_each, last_line, shell_path
from dlbricks_tui.fleet.setting_up.findings import Examination, HostFinding, Readiness, Verdict, Wanted
from dlbricks_tui.fleet.setting_up.host_facts import answer_in, script
from dlbricks_tui.fleet.setting_up.judging import BYTES_TO_INSTALL, in_bytes
from dlbricks_tui.fleet.setting_up.own_wheel import write_wheel
from dlbricks_tui.fleet.ssh.connection import Connect, Connection
from dlbricks_tui.printable import printable
from dlbricks_tui.untrusted_json import parsed_document

SECONDS_TO_INSTALL = 1800.0
_SECONDS_TO_PREPARE = 60.0
_MOST_CHARACTERS = 300
_MOST_IN_A_PATH = 4096
_NO_NETWORK = re.compile(
    "Failed to establish a new connection|NewConnectionError|ConnectTimeout|ReadTimeout|name resolution|ProxyError|"
    "Network is unreachable|Max retries exceeded|SSLError"
)
_NO_SUCH_WHEEL = re.compile(r"No matching distribution found for ([^\s;(]+)")
_ERROR = re.compile(r"^ERROR: (.+)$", re.MULTILINE)


class InstallError(FleetError):
    """Something that a host needs cannot be installed there."""


@dataclass(frozen=True, slots=True)
class Wheels:
    """The wheel of this dlbricks, and all wheels that it needs for hosts without a package index; empty: none."""

    own: Path
    others: tuple[Path, ...] = ()


def set_up_hosts(
    hosts: Sequence[HostEntry],
    wanted: Wanted,
    connect: Connect,
    *,
    wheels: Path | None = None,
    told: Callable[[Examination], None] = lambda _: None,
    step: Callable[[str, str], None] = lambda _host, _text: None,
) -> tuple[Examination, ...]:
    """Examine hosts side by side, install what they lack, and return what was found then, in their order.

    `wheels` is a folder of wheels for hosts without a package index. `step` gets the name of a host and what happens
    there; `told` gets each host when it is done.
    """
    others = () if wheels is None else _wheels_in(wheels)
    with tempfile.TemporaryDirectory(prefix="dlbricks-") as folder:

        @cache
        def ready() -> Wheels:
            return Wheels(write_wheel(Path(folder)), others)

        async def one(host: HostEntry) -> Examination:
            async with connect(host) as connection:
                before = await examine(host, connection, wanted)
                if not before.can_be_set_up:
                    return before
                return await set_up(before, host, connection, wanted, ready(), lambda text: step(host.name, text))

        return for_each(hosts, one, told)


async def set_up(
    before: Examination,
    host: HostEntry,
    connection: Connection,
    wanted: Wanted,
    wheels: Wheels,
    step: Callable[[str], None],
) -> Examination:
    """Install what a host lacks, and examine it again; a failure is a finding."""
    try:
        environment = await _install(host, connection, wanted, wheels, step)
    except FleetError as error:
        # A file that cannot be written there, too.
        finding = HostFinding(subject="install", state=str(error), verdict=Verdict.LACKS)
        return replace(before, state=Readiness.LACKING, findings=(finding, *before.findings))
    after = await examine(host, connection, wanted)
    return replace(after, installed=f"made {environment}")


async def _install(
    host: HostEntry, connection: Connection, wanted: Wanted, wheels: Wheels, step: Callable[[str], None]
) -> str:
    """Return the path of the environment that was made."""
    token = secrets.token_hex(8)
    prepared = await _call(host, connection, "prepare", _SECONDS_TO_PREPARE, host.folder_there, token)
    incoming = _answer(prepared, "incoming", host, wheels)
    sent = (wheels.own, *wheels.others)
    step(f"sending {_megabytes(sent)}")
    for path in sent:
        await connection.send(path, f"{incoming}/{path.name}")
    step("installing")
    versions = {it.name: it.version for it in wanted.packages}
    chosen = (host.folder_there, token, wheels.own.name, wanted.content, list(wanted.extras), versions)
    options = {"all_wheels": bool(wheels.others), "seconds_to_wait": SECONDS_TO_INSTALL / 2}
    done = await _call(host, connection, "install", SECONDS_TO_INSTALL, *chosen, **options)
    return _answer(done, "environment", host, wheels)


async def _call(
    host: HostEntry, connection: Connection, function: str, seconds: float, *arguments: object, **options: object
) -> dict[str, Any]:
    """Call a function of the installer there, and return the document that it prints."""
    program = script(host_install, function, *arguments, **options)
    asked = await connection.run(f"{shell_path(host.python_there)} -I -", program, seconds=seconds)
    try:
        return parsed_document(answer_in(asked.out), host_install.FORMAT, host_install.SCHEMA)
    except ValueError:
        reason = last_line(asked.err) or f"it ended with status {asked.status}"
        raise InstallError(f"the installer failed there: {reason}") from None


def _answer(document: dict[str, Any], name: str, host: HostEntry, wheels: Wheels) -> str:
    """Return a path from the installer's answer, or raise InstallError with its reason."""
    found = document.get(name)
    if isinstance(found, str) and found.startswith("/") and found.isprintable() and len(found) <= _MOST_IN_A_PATH:
        return found
    step, output = str(document.get("step", "")), str(document.get("output", ""))
    raise InstallError(reason(step, output, host, wheels, is_full=document.get("is_full") is True))


def reason(step: str, output: str, host: HostEntry, wheels: Wheels, *, is_full: bool) -> str:
    """Return why a step of the installer failed, and what to do, in one line."""
    folder, python = host.folder_there, host.python_there
    if is_full:
        needed = in_bytes(BYTES_TO_INSTALL)
        return f"the disk is full: free {needed} for {folder}, or name a folder on another disk in the hosts file"
    match step:
        case "lock":
            return f"another installation in {folder} takes long: try again when it has ended"
        case "link":
            return f"{folder}/{host_install.ENVIRONMENT} was not made by this command: move it away"
        case "venv":
            return f"{python} -m venv failed ({_last(output)}): sudo apt install python3-venv, or name another python"
        case "pip":
            return _pip_reason(output, python, wheels)
    return f"{folder} cannot be used ({_last(output)}): make it writable, or name another folder in the hosts file"


def _pip_reason(output: str, python: str, wheels: Wheels) -> str:
    missing = _NO_SUCH_WHEEL.search(output)
    if wheels.others and missing:
        folder, name = wheels.others[0].parent, printable(missing[1])
        download = f"pip download --only-binary :all: -d {folder} '{name}'"
        return f"{folder} has no wheel of {name} for {python} there: {download}, with such a Python"
    if not wheels.others and _NO_NETWORK.search(output):
        return "it cannot reach its package index: give a folder of wheels with --wheels DIR, or correct pip's settings"
    if missing:
        name = printable(missing[1])
        return f"its package index has no {name} for {python}: name another python, or give --wheels DIR"
    errors = _ERROR.findall(output)
    return f"pip failed: {printable(errors[-1])[:_MOST_CHARACTERS] if errors else _last(output)}"


def _wheels_in(folder: Path) -> tuple[Path, ...]:
    try:
        found = tuple(sorted(it for it in folder.iterdir() if it.suffix == ".whl" and it.is_file()))
    except OSError as error:
        raise InstallError(f"cannot read the folder of wheels {folder}: {error.strerror}") from error
    # The one that is made here is sent instead.
    others = tuple(it for it in found if not it.name.startswith("dlbricks_tui-"))
    if not others:
        raise InstallError(
            f"{folder} holds no wheels: pip download --only-binary :all: -d {folder} PACKAGE... fills it"
        )
    return others


def _last(output: str) -> str:
    return last_line(output.encode()) or "it printed nothing"


def _megabytes(paths: Sequence[Path]) -> str:
    return f"{sum(it.stat().st_size for it in paths) / 1e6:.0f} MB"
