"""Facts about a host, found out by the Python of that host before anything is installed there.

This file is sent as text, with a call of `tell` at its end. It needs only the standard library of Python 3.7, changes
nothing, and prints one JSON document of bounded size.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path

FORMAT = "dlbricks-host-facts"
SCHEMA = 1
PACKAGE = "dlbricks_tui"
# The environment is a link to one of the folders in the other folder, so that it is replaced in one step.
ENVIRONMENT = "venv"
ENVIRONMENTS = "venvs"
# The lock of the line of work, and the folder of its tickets, as `host.queue` names them.
LOCK_VARIABLE = "DLBRICKS_HOST_LOCK"
LOCK = "/tmp/dlbricks-measuring.lock"
TICKETS = ".queue"
# A number that cannot be read.
UNKNOWN = -1

_PYTHONS = ("python3.10", "python3.11", "python3.12", "python3.13", "python3.14")
_CPU = Path("/sys/devices/system/cpu")
_VECTORS = (("avx512f", "avx512"), ("avx2", "avx2"), ("avx", "avx"), ("sve", "sve"), ("asimd", "neon"))
_SECONDS_TO_WATCH = 0.5
_SECONDS_TO_START = 60
_MOST_CHARACTERS = 300
_MOST_IN_A_PATH = 4096


def tell(folder: str, packages: list[str]) -> None:
    """Print the facts: about the host, the folder there, and the versions of these packages in its environment."""
    first = _milliseconds()
    facts = {**_python(), **_machine(), **_place(Path(folder).expanduser().absolute(), packages)}
    clock = {"clock_first": first, "clock_last": _milliseconds()}
    sys.stdout.write(json.dumps({"format": FORMAT, "schema": SCHEMA, **facts, **clock}) + "\n")


def content_of(files: dict[str, Path]) -> str:
    """Return the digest of files by name; it says nothing of their times and modes."""
    whole = hashlib.sha256()
    for name in sorted(files):
        whole.update(f"{name} {hashlib.sha256(files[name].read_bytes()).hexdigest()}\n".encode())
    return whole.hexdigest()


def package_files(folder: Path, prefix: str = PACKAGE) -> dict[str, Path]:
    """Return the files of a package by their names in a wheel, without what interpreters and editors leave there."""
    found = {}
    for place, folders, names in os.walk(str(folder)):
        folders[:] = [name for name in folders if name != "__pycache__" and not name.startswith(".")]
        for name in names:
            if not name.startswith(".") and not name.endswith((".pyc", "~")):
                path = Path(place) / name
                found[f"{prefix}/{path.relative_to(folder).as_posix()}"] = path
    return found


def _python() -> dict[str, object]:
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "executable": _bounded(sys.executable),
        "others": [name for name in _PYTHONS if shutil.which(name)],
        "makes_environments": _has("venv") and _has("ensurepip"),
    }


def _has(module: str) -> bool:
    try:
        __import__(module)
    except ImportError:
        return False
    return True


def _machine() -> dict[str, object]:
    flags = _field("/proc/cpuinfo", "flags") or _field("/proc/cpuinfo", "Features")
    memory = _field("/proc/meminfo", "MemAvailable").split()
    before = _processor_times()
    time.sleep(_SECONDS_TO_WATCH)
    after = _processor_times()
    return {
        "operating_system": platform.system(),
        "machine": platform.machine(),
        "libc": _bounded(" ".join(platform.libc_ver()).strip()),
        "cpu": _bounded(_field("/proc/cpuinfo", "model name")),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        "vectors": next((name for flag, name in _VECTORS if flag in flags.split()), ""),
        "governors": _governors(),
        "busy_permille": _permille(before, after, 0),
        "stolen_permille": _permille(before, after, 1),
        "free_memory": int(memory[0]) * 1024 if memory and memory[0].isdigit() else UNKNOWN,
        "measuring": _measuring(),
    }


def _governors() -> list[str]:
    return sorted({_text(path)[:40] for path in _CPU.glob("cpu[0-9]*/cpufreq/scaling_governor")})[:8]


def _processor_times() -> tuple[int, int, int] | None:
    """Return the times of all processors so far: busy, stolen by a hypervisor, and all together."""
    words = _text(Path("/proc/stat")).partition("\n")[0].split()[1:9]
    if len(words) < 8 or not all(word.isdigit() for word in words):
        return None
    times = [int(word) for word in words]
    idle, stolen = times[3] + times[4], times[7]
    return sum(times) - idle - stolen, stolen, sum(times)


def _permille(before: tuple[int, int, int] | None, after: tuple[int, int, int] | None, part: int) -> int:
    if before is None or after is None:
        return UNKNOWN
    return 1000 * (after[part] - before[part]) // max(1, after[2] - before[2])


def _measuring() -> str:
    """Return the work that measures on this host, by the ticket that its process keeps locked."""
    folder = (os.environ.get(LOCK_VARIABLE) or LOCK) + TICKETS
    try:
        names = sorted(path.name for path in Path(folder).iterdir() if path.is_file())
    except OSError:
        return ""
    for name in names:
        try:
            with (Path(folder) / name).open("rb") as file:
                ticket = json.loads(file.readline(1 << 14).decode())
                described = "{kind} of {title} by {user} (process {pid})".format(**ticket)
                measures = ticket["measures"] is True and _is_locked(file.fileno())
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if measures:
            return _bounded(described)
    return ""


def _is_locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _place(folder: Path, packages: list[str]) -> dict[str, object]:
    there = _nearest(folder)
    link = folder / ENVIRONMENT
    found: dict[str, object] = {
        "folder": _bounded(str(folder), _MOST_IN_A_PATH),
        "obstacle": _obstacle(there),
        "free_disk": shutil.disk_usage(str(there)).free,
        # False: something that `--install` has not made is in its place.
        "replaceable": link.is_symlink() or not link.exists(),
        "interpreter": "",
        "environment_python": "",
        "dlbricks": "",
        "content": "",
        "packages": {},
    }
    # The link is resolved: a process keeps its packages when the link changes.
    environment = Path(os.path.realpath(str(link)))
    python = environment / "bin" / "python"
    version = _version_of(python)
    if not version:
        return found
    site = environment / "lib" / ("python" + ".".join(version.split(".")[:2])) / "site-packages"
    versions = _versions(site)
    ours = package_files(site / PACKAGE)
    found.update(
        interpreter=_bounded(str(python), _MOST_IN_A_PATH),
        environment_python=version,
        dlbricks=versions.get(PACKAGE.replace("_", "-"), ""),
        content=content_of(ours) if ours else "",
        packages={name: versions[name] for name in packages if name in versions},
    )
    return found


def _versions(site: Path) -> dict[str, str]:
    """Return the versions of the packages that are installed in a folder, by their normal names."""
    found = {}
    for path in site.glob("*.dist-info"):
        name, _, version = path.name[: -len(".dist-info")].partition("-")
        found[name.lower().replace("_", "-").replace(".", "-")] = _bounded(version)
    return found


def _nearest(folder: Path) -> Path:
    """Return the folder, or the nearest one above it that exists."""
    while not folder.exists():
        folder = folder.parent
    return folder


def _obstacle(there: Path) -> str:
    if not there.is_dir():
        return _bounded(f"{there} is a file")
    if not os.access(str(there), os.W_OK | os.X_OK):
        return _bounded(f"this user may not write to {there}")
    return ""


def _version_of(python: Path) -> str:
    """Return the version of an interpreter; empty if there is none that starts."""
    command = [str(python), "-I", "-c", "import platform; print(platform.python_version())"]
    try:
        asked = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_SECONDS_TO_START,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return "" if asked.returncode else _bounded(asked.stdout.decode(errors="replace").strip(), 40)


def _field(path: str, name: str) -> str:
    """Return the value of the first line `name: value` of a file."""
    for line in _text(Path(path)).splitlines():
        found, _, value = line.partition(":")
        if found.strip() == name:
            return value.strip()
    return ""


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode(errors="replace").strip("\n\0 ")
    except OSError:
        return ""


def _bounded(text: str, most: int = _MOST_CHARACTERS) -> str:
    return text[:most]


def _milliseconds() -> int:
    return int(time.time() * 1000)
