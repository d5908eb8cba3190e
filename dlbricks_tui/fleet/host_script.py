"""The script that a host's own Python runs for the doctor and the installer, before anything is installed there.

This file is sent as text, with a call of `tell`, `prepare` or `install` at its end. It needs only the standard library
of Python 3.7 and no rights beyond those of the user, and prints one JSON document of bounded size.

`tell` changes nothing. An environment is made in a folder of its own, and the link to it changes when it is complete: a
half-made one is never used.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path

FORMAT = "dlbricks-host"
SCHEMA = 1
# The environment is a link to one of the folders in the other folder, so that it is replaced in one step.
ENVIRONMENT = "venv"
ENVIRONMENTS = "venvs"
# Files on their way to the host.
INCOMING = "incoming"
# In an environment that is complete; it tells what is in it.
COMPLETE = "complete"

_LOCK, _BEGUN = "lock", "begun"
_SECONDS_TO_SEND = 24 * 3600
_SECONDS_BETWEEN_TRIES = 0.5
_MOST_IN_AN_OUTPUT = 20000
# Variables that lead pip or the interpreter to another place.
_LEFT_OUT = ("PYTHONPATH", "PYTHONHOME", "PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT")
# Hosts without a route to the package index wait for nothing else.
_PIP = ("-m", "pip", "--no-input", "--disable-pip-version-check", "--retries", "2", "--timeout", "20")
_PYTHONS = ("python3.10", "python3.11", "python3.12", "python3.13", "python3.14")
# Letters of a text in the facts.
_MOST_CHARACTERS = 4096


def tell(folder: str) -> None:
    """Print the facts: the interpreter, and the folder there."""
    first = int(time.time() * 1000)
    facts = {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "executable": sys.executable,
        "others": [name for name in _PYTHONS if shutil.which(name)],
        "makes_environments": _has("venv") and _has("ensurepip"),
        "operating_system": platform.system(),
        "machine": platform.machine(),
        "libc": " ".join(platform.libc_ver()).strip(),
        **_place(Path(folder).expanduser().absolute()),
    }
    bounded = {name: it[:_MOST_CHARACTERS] if isinstance(it, str) else it for name, it in facts.items()}
    _tell(**bounded, clock_first=first, clock_last=int(time.time() * 1000))


def _has(module: str) -> bool:
    try:
        __import__(module)
    except ImportError:
        return False
    return True


def _place(folder: Path) -> dict[str, object]:
    there = folder
    # The nearest folder above it that exists.
    while not there.exists():
        there = there.parent
    obstacle = ""
    if not there.is_dir():
        obstacle = f"{there} is a file"
    elif not os.access(str(there), os.W_OK | os.X_OK):
        obstacle = f"this user may not write to {there}"
    link = folder / ENVIRONMENT
    # The link is resolved: a process keeps its packages when the link changes.
    python = Path(os.path.realpath(str(link))) / "bin" / "python"
    return {
        "folder": str(folder),
        "obstacle": obstacle,
        "free_disk": shutil.disk_usage(str(there)).free,
        # False: something that `--install` has not made is in its place.
        "replaceable": link.is_symlink() or not link.exists(),
        "interpreter": str(python) if os.access(str(python), os.X_OK) else "",
    }


def _content(path: Path) -> bytes:
    """Return the content of a file; nothing if it is not there, or belongs to another user."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def prepare(folder: str, token: str) -> None:
    """Make the folder that files are sent to, which only this user can read."""
    try:
        incoming = _resolved(folder) / INCOMING / token
        incoming.mkdir(mode=0o700, parents=True)
        (incoming / _BEGUN).touch()
    except OSError as error:
        _tell_failure("folder", str(error))
    else:
        _tell(state="prepared", incoming=str(incoming))


def install(
    folder: str,
    token: str,
    wheel: str,
    content: str,
    extras: list[str],
    versions: dict[str, str],
    *,
    all_wheels: bool,
    seconds_to_wait: float,
) -> None:
    """Make an environment with the wheel that was sent, its extras, and packages of these versions, and use it.

    `content` tells wheels of the same version apart. With `all_wheels`, nothing but the wheels that were sent is used.
    """
    place = _resolved(folder)
    incoming = place / INCOMING / token
    source = ["--no-index", "--find-links", str(incoming)] if all_wheels else []
    packages = [f"{package}=={version}" for package, version in sorted(versions.items())]
    options = ["--no-cache-dir", *source, f"{incoming / wheel}[{','.join(extras)}]", *packages]
    try:
        (place / ENVIRONMENTS).mkdir(exist_ok=True)
        with (place / ENVIRONMENTS / _LOCK).open("ab") as lock:
            # Hosts may share the folder.
            if _taken(lock.fileno(), seconds_to_wait):
                _make(place, incoming, json.dumps([content, extras, versions], sort_keys=True), options)
            else:
                _tell_failure("lock")
    except OSError as error:
        _tell_failure("folder", str(error))
    finally:
        shutil.rmtree(str(incoming), ignore_errors=True)


def _resolved(folder: str) -> Path:
    # Commands of processes name an environment by this path.
    return Path(os.path.realpath(str(Path(folder).expanduser())))


def _taken(lock: int, seconds: float) -> bool:
    give_up = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > give_up:
                return False
            time.sleep(_SECONDS_BETWEEN_TRIES)


def _make(place: Path, incoming: Path, content: str, options: list[str]) -> None:
    link, target = place / ENVIRONMENT, place / ENVIRONMENTS / f"{platform.python_version()}-{incoming.name}"
    before = Path(os.path.realpath(str(link)))
    if link.exists() and not link.is_symlink():
        return _tell_failure("link")
    complete, begun = before / COMPLETE, incoming / _BEGUN
    # Another host that shares the folder may have made the same environment since this one began.
    is_same = complete.is_file() and begun.is_file() and complete.read_text() == content
    if is_same and complete.stat().st_mtime > begun.stat().st_mtime:
        return _tell(state="done", environment=str(before))
    pip = [str(target / "bin" / "python"), *_PIP, "install", *options]
    for step, command in (("venv", [sys.executable, "-m", "venv", str(target)]), ("pip", pip)):
        output = _failure_of(command, incoming)
        if output is not None:
            shutil.rmtree(str(target), ignore_errors=True)
            return _tell_failure(step, output)
    (target / COMPLETE).write_text(content)
    # The link leads to the environment in one step.
    draft = link.with_name(f"{ENVIRONMENT}.{os.getpid()}.new")
    draft.symlink_to(Path(ENVIRONMENTS) / target.name)
    draft.replace(link)
    # The last one is kept, too: another host that shares the folder may use it.
    for folder in target.parent.iterdir():
        if folder.is_dir() and folder not in (target, before) and not _in_use(folder):
            shutil.rmtree(str(folder), ignore_errors=True)
    # Of installations whose connection was lost long ago.
    for folder in incoming.parent.iterdir():
        if folder.stat().st_mtime < time.time() - _SECONDS_TO_SEND:
            shutil.rmtree(str(folder), ignore_errors=True)
    return _tell(state="done", environment=str(target))


def _failure_of(command: list[str], temporary: Path) -> str | None:
    """Run a command, and return what it printed if it failed; None if it succeeded."""
    variables = {name: value for name, value in os.environ.items() if name not in _LEFT_OUT}
    # Downloads go to the same disk as the environment.
    variables["TMPDIR"] = str(temporary)
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=variables
    )
    return done.stdout.decode(errors="replace")[-_MOST_IN_AN_OUTPUT:] if done.returncode else None


def _in_use(folder: Path) -> bool:
    """True if the command of a process names the folder, or if that is unknown."""
    commands = list(Path("/proc").glob("[0-9]*/cmdline"))
    return not commands or any(str(folder).encode() in _content(path) for path in commands)


def _tell_failure(step: str, output: str = "") -> None:
    is_full = any(os.strerror(number) in output for number in (errno.ENOSPC, errno.EDQUOT))
    _tell(state="failed", step=step, output=output, is_full=is_full)


def _tell(**facts: object) -> None:
    sys.stdout.write(json.dumps({"format": FORMAT, "schema": SCHEMA, **facts}) + "\n")
