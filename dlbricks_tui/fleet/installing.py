"""Set up the hosts of a fleet: send this dlbricks as a wheel, and make the environment that it runs in."""

import base64
import hashlib
import os
import platform
import re
import secrets
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from importlib import metadata
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

import dlbricks_tui
from dlbricks_tui.files import parsed_document
from dlbricks_tui.fleet import host_script
from dlbricks_tui.fleet.doctor import (
    BYTES_TO_INSTALL,
    Examination,
    FindingVerdict,
    HostFinding,
    Readiness,
    Wanted,
    WantedPackage,
    answer_in,
    examine,
    for_each,
    in_bytes,
    script,
)
from dlbricks_tui.fleet.request import FleetError, HostEntry, last_line, shell_path
from dlbricks_tui.fleet.ssh import Connect, SshConnection
from dlbricks_tui.folders import SAMPLE_MODELS, THEMES
from dlbricks_tui.printable import printable
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.traits import traits_of

PACKAGE, DISTRIBUTION = "dlbricks_tui", "dlbricks-tui"
_FLEET = "fleet"
# What both sides must have in one version: the engine, whose messages change with it, and the reader of models.
_ALWAYS = ("distributed", "dask", "onnx")
_FOLDER = Path(dlbricks_tui.__file__).parent
# In a checkout only; a wheel leaves them out.
_BUILDERS = f"{PACKAGE}/sample_models/builders/"
_WHEEL = "Wheel-Version: 1.0\nGenerator: dlbricks\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
# The earliest that a zip file can state: the same content makes the same wheel.
_TIME = (1980, 1, 1, 0, 0, 0)
_MODE = 0o100644 << 16
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


def wanted(runtimes: Sequence[Runtime]) -> Wanted:
    """Return what hosts need to measure by these runtimes as this machine would."""
    ours = _distribution()
    frameworks = tuple(dict.fromkeys(it.framework for it in runtimes))
    versions = dict(versions_here(_ALWAYS))
    for runtime in runtimes:
        packages = traits_of(runtime.framework).packages
        # A runtime is known without the number of its post-release.
        fits = (
            it for it in versions_here(packages).items() if it[1].split(".post")[0] == runtime.version.split(".post")[0]
        )
        name, version = next(fits, (packages[0], runtime.version))
        versions[name] = version
    # Under which this dlbricks needs a package.
    conditions: dict[str, str] = {}
    for text in ours.requires or []:
        with suppress(InvalidRequirement):
            requirement = Requirement(text)
            if requirement.marker is not None:
                conditions.setdefault(canonicalize_name(requirement.name), str(requirement.marker))
    found = []
    for name, version in versions.items():
        is_here = versions_here([name]).get(name) == version
        stated = metadata.metadata(name).get_all("Requires-Python") if is_here else None
        pythons, condition = (stated or [""])[0], conditions.get(name, "")
        found.append(WantedPackage(name=name, version=version, pythons=pythons, condition=condition))
    offered = ours.metadata.get_all("Provides-Extra") or []
    return Wanted(
        dlbricks=dlbricks_tui.__version__,
        content=content_of(own_files()),
        packages=tuple(found),
        extras=(_FLEET, *(each for each in frameworks if each in offered)),
        frameworks=frameworks,
        python=".".join(platform.python_version_tuple()[:2]),
    )


def own_files() -> dict[str, Path]:
    """Return the files of this dlbricks by their names in a wheel; in a checkout some stand beside the package."""
    files = package_files(_FOLDER)
    for folder in (SAMPLE_MODELS, THEMES):
        files |= package_files(folder, f"{PACKAGE}/{folder.name}")
    return {name: path for name, path in files.items() if not name.startswith(_BUILDERS)}


def content_of(files: dict[str, Path]) -> str:
    """Return the digest of files by name; it says nothing of their times and modes."""
    whole = hashlib.sha256()
    for name in sorted(files):
        whole.update(f"{name} {hashlib.sha256(files[name].read_bytes()).hexdigest()}\n".encode())
    return whole.hexdigest()


def package_files(folder: Path, prefix: str = PACKAGE) -> dict[str, Path]:
    """Return the files of a package by their names in a wheel, without what interpreters and editors leave there."""
    found = {}
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__" and not name.startswith(".")]
        for name in names:
            if not name.startswith(".") and not name.endswith((".pyc", "~")):
                path = Path(place) / name
                found[f"{prefix}/{path.relative_to(folder).as_posix()}"] = path
    return found


def write_wheel(folder: Path) -> Path:
    """Write the wheel of this dlbricks into a folder, and return its path."""
    found = _distribution()
    stem = f"{PACKAGE}-{dlbricks_tui.__version__}"
    contents = {name: path.read_bytes() for name, path in sorted(own_files().items())}
    for name in ("METADATA", "entry_points.txt"):
        if text := found.read_text(name):
            contents[f"{stem}.dist-info/{name}"] = text.encode()
    contents[f"{stem}.dist-info/WHEEL"] = _WHEEL.encode()
    # License files, beside the metadata, which names them.
    for it in found.files or []:
        if len(it.parts) > 2 and it.parts[-3].endswith(".dist-info") and it.parts[-2] == "licenses":
            contents[f"{stem}.dist-info/licenses/{it.name}"] = Path(str(found.locate_file(it))).read_bytes()
    record = []
    for name, content in contents.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
        record.append(f"{name},sha256={digest},{len(content)}")
    contents[f"{stem}.dist-info/RECORD"] = "\n".join([*record, f"{stem}.dist-info/RECORD,,", ""]).encode()
    path = folder / f"{stem}-py3-none-any.whl"
    with ZipFile(path, "w", ZIP_DEFLATED) as wheel:
        for name, content in contents.items():
            entry = ZipInfo(name, _TIME)
            entry.external_attr, entry.compress_type = _MODE, ZIP_DEFLATED
            wheel.writestr(entry, content)
    return path


def _distribution() -> metadata.Distribution:
    """Return the installed metadata of the dlbricks that runs; refuse that of another version."""
    cure = (
        f"install it here again: pip install '{DISTRIBUTION}[{_FLEET}]', or pip install -e '.[{_FLEET}]' in a checkout"
    )
    try:
        found = metadata.distribution(DISTRIBUTION)
    except metadata.PackageNotFoundError as error:
        raise FleetError(f"no wheel of this dlbricks can be made, as it was never installed: {cure}") from error
    if found.version != dlbricks_tui.__version__ or _FLEET not in (found.metadata.get_all("Provides-Extra") or ()):
        raise FleetError(f"no wheel of this dlbricks can be made, as another version was installed here: {cure}")
    return found


def versions_here(packages: Iterable[str]) -> Mapping[str, str]:
    """Return the versions of those of the packages that are installed here."""
    found = {}
    for name in packages:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def set_up_hosts(
    hosts: Sequence[HostEntry],
    wanted: Wanted,
    connect: Connect,
    *,
    wheels: Path | None = None,
    step: Callable[[str, str], None] = lambda _host, _text: None,
) -> tuple[Examination, ...]:
    """Examine hosts side by side, install what they lack, and return what was found then, in their order.

    `wheels` is a folder of wheels for hosts without a package index. `step` gets the name of a host and what happens
    there.
    """
    others = () if wheels is None else _wheels_in(wheels)
    with tempfile.TemporaryDirectory(prefix="dlbricks-") as folder:

        @cache
        def ready() -> tuple[Path, ...]:
            return (write_wheel(Path(folder)), *others)

        async def one(host: HostEntry, connection: SshConnection) -> Examination:
            before = await examine(wanted, host, connection)
            if not before.can_be_set_up:
                return before
            try:
                environment = await _install(host, connection, wanted, ready(), partial(step, host.name))
            except FleetError as error:
                # A file that cannot be written there, too.
                finding = HostFinding("install", str(error), FindingVerdict.LACKS)
                return replace(before, state=Readiness.LACKING, findings=(finding, *before.findings))
            return replace(await examine(wanted, host, connection), installed=f"made {environment}")

        return for_each(hosts, connect, one)


async def _install(
    host: HostEntry, connection: SshConnection, wanted: Wanted, wheels: tuple[Path, ...], step: Callable[[str], None]
) -> str:
    """Install what a host lacks, and return the path of the environment that was made.

    `wheels` are that of this dlbricks, and all that it needs for hosts without a package index.
    """

    async def call(function: str, seconds: float, answer: str, *arguments: object, **options: object) -> str:
        """Call a function of the installer there, and return a path from its answer."""
        program = script(function, host.folder_there, token, *arguments, **options)
        asked = await connection.run(f"{shell_path(host.python_there)} -I -", program, seconds=seconds)
        try:
            document = parsed_document(answer_in(asked.out), host_script.FORMAT, host_script.SCHEMA)
        except ValueError:
            why = last_line(asked.err) or f"it ended with status {asked.status}"
            raise FleetError(f"the installer failed there: {why}") from None
        found = document.get(answer)
        if isinstance(found, str) and found.startswith("/") and found.isprintable() and len(found) <= _MOST_IN_A_PATH:
            return found
        failed, output = str(document.get("step", "")), str(document.get("output", ""))
        raise FleetError(reason(failed, output, host, wheels, is_full=document.get("is_full") is True))

    token = secrets.token_hex(8)
    incoming = await call("prepare", _SECONDS_TO_PREPARE, "incoming")
    step(f"sending {sum(it.stat().st_size for it in wheels) / 1e6:.0f} MB")
    for path in wheels:
        await connection.send(path, f"{incoming}/{path.name}")
    step("installing")
    versions = {it.name: it.version for it in wanted.packages}
    chosen = (wheels[0].name, wanted.content, list(wanted.extras), versions)
    options = {"all_wheels": len(wheels) > 1, "seconds_to_wait": SECONDS_TO_INSTALL / 2}
    return await call("install", SECONDS_TO_INSTALL, "environment", *chosen, **options)


def reason(step: str, output: str, host: HostEntry, wheels: tuple[Path, ...], *, is_full: bool) -> str:
    """Return why a step of the installer failed, and what to do, in one line."""
    folder, python = host.folder_there, host.python_there
    last = last_line(output.encode()) or "it printed nothing"
    if is_full:
        needed = in_bytes(BYTES_TO_INSTALL)
        return f"the disk is full: free {needed} for {folder}, or name a folder on another disk in the hosts file"
    match step:
        case "lock":
            return f"another installation in {folder} takes long: try again when it has ended"
        case "link":
            return f"{folder}/{host_script.ENVIRONMENT} was not made by this command: move it away"
        case "venv":
            return f"{python} -m venv failed ({last}): sudo apt install python3-venv, or name another python"
        case "pip":
            missing = _NO_SUCH_WHEEL.search(output)
            name = printable(missing[1]) if missing else ""
            if wheels[1:] and missing:
                sent = wheels[1].parent
                download = f"pip download --only-binary :all: -d {sent} '{name}'"
                return f"{sent} has no wheel of {name} for {python} there: {download}, with such a Python"
            if not wheels[1:] and _NO_NETWORK.search(output):
                cure = "give a folder of wheels with --wheels DIR, or correct pip's settings"
                return f"it cannot reach its package index: {cure}"
            if missing:
                return f"its package index has no {name} for {python}: name another python, or give --wheels DIR"
            errors = _ERROR.findall(output)
            return f"pip failed: {printable(errors[-1])[:_MOST_CHARACTERS] if errors else last}"
    return f"{folder} cannot be used ({last}): make it writable, or name another folder in the hosts file"


def _wheels_in(folder: Path) -> tuple[Path, ...]:
    try:
        found = tuple(sorted(it for it in folder.iterdir() if it.suffix == ".whl" and it.is_file()))
    except OSError as error:
        raise FleetError(f"cannot read the folder of wheels {folder}: {error.strerror}") from error
    # The one that is made here is sent instead.
    others = tuple(it for it in found if not it.name.startswith("dlbricks_tui-"))
    if not others:
        raise FleetError(f"{folder} holds no wheels: pip download --only-binary :all: -d {folder} PACKAGE... fills it")
    return others
