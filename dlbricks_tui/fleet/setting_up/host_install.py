"""Make the environment of a fleet on a host, run by the Python of that host.

This file is sent as text, with a call of `prepare` or of `install` at its end. It needs only the standard library and
no rights beyond those of the user. An environment is made in a folder of its own, and the link to it changes when it is
complete: a half-made one is never used.
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

FORMAT = "dlbricks-host-install"
SCHEMA = 1
ENVIRONMENT = "venv"
ENVIRONMENTS = "venvs"
# Files on their way to the host.
INCOMING = "incoming"
# In an environment that is complete; it tells what is in it.
COMPLETE = "complete"

_LOCK = "lock"
_BEGUN = "begun"
_SECONDS_TO_SEND = 24 * 3600
_SECONDS_BETWEEN_TRIES = 0.5
_MOST_CHARACTERS = 20000
# Variables that lead pip or the interpreter to another place.
_LEFT_OUT = ("PYTHONPATH", "PYTHONHOME", "PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT")
# Hosts without a route to the package index wait for nothing else.
_PIP = ("-m", "pip", "--no-input", "--disable-pip-version-check", "--retries", "2", "--timeout", "20")


def prepare(folder: str, token: str) -> None:
    """Make the folder that files are sent to, which only this user can read."""
    try:
        incoming = _resolved(folder) / INCOMING / token
        incoming.mkdir(mode=0o700, parents=True)
        (incoming / _BEGUN).touch()
    except OSError as error:
        _tell("failed", step="folder", output=str(error), is_full=_is_full(error))
    else:
        _tell("prepared", incoming=str(incoming))


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
                _tell("failed", step="lock")
    except OSError as error:
        _tell("failed", step="folder", output=str(error), is_full=_is_full(error))
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
        return _tell("failed", step="link")
    if _made_meanwhile(before, incoming, content):
        return _tell("done", environment=str(before))
    pip = [str(target / "bin" / "python"), *_PIP, "install", *options]
    for step, command in (("venv", [sys.executable, "-m", "venv", str(target)]), ("pip", pip)):
        output = _failure_of(command, incoming)
        if output is not None:
            shutil.rmtree(str(target), ignore_errors=True)
            return _tell("failed", step=step, output=output, is_full=_says_full(output))
    (target / COMPLETE).write_text(content)
    _lead(link, target)
    _remove_others(target.parent, (target, before))
    _remove_stranded(incoming.parent)
    return _tell("done", environment=str(target))


def _made_meanwhile(environment: Path, incoming: Path, content: str) -> bool:
    """True if another host that shares the folder has made the same environment since this one began."""
    try:
        complete, begun = environment / COMPLETE, incoming / _BEGUN
        return complete.read_text() == content and complete.stat().st_mtime > begun.stat().st_mtime
    except OSError:
        return False


def _failure_of(command: list[str], temporary: Path) -> str | None:
    """Run a command, and return what it printed if it failed; None if it succeeded."""
    variables = {name: value for name, value in os.environ.items() if name not in _LEFT_OUT}
    # Downloads go to the same disk as the environment.
    variables["TMPDIR"] = str(temporary)
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=variables
    )
    return done.stdout.decode(errors="replace")[-_MOST_CHARACTERS:] if done.returncode else None


def _lead(link: Path, target: Path) -> None:
    """Let the link lead to an environment, in one step."""
    draft = link.with_name(f"{ENVIRONMENT}.{os.getpid()}.new")
    draft.symlink_to(Path(ENVIRONMENTS) / target.name)
    draft.replace(link)


def _remove_others(environments: Path, kept: tuple[Path, ...]) -> None:
    """Remove the environments that no process uses any more, and what interrupted installations left.

    The last one is kept, too: another host that shares the folder may use it.
    """
    for folder in environments.iterdir():
        if folder.is_dir() and folder not in kept and not _in_use(folder):
            shutil.rmtree(str(folder), ignore_errors=True)


def _remove_stranded(incoming: Path) -> None:
    """Remove the files of installations whose connection was lost long ago."""
    for folder in incoming.iterdir():
        if folder.stat().st_mtime < time.time() - _SECONDS_TO_SEND:
            shutil.rmtree(str(folder), ignore_errors=True)


def _in_use(folder: Path) -> bool:
    """True if the command of a process names the folder, or if that is unknown."""
    commands = list(Path("/proc").glob("[0-9]*/cmdline"))
    if not commands:
        return True
    return any(str(folder).encode() in _content(path) for path in commands)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        # It has ended, or belongs to another user.
        return b""


def _is_full(error: OSError) -> bool:
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def _says_full(output: str) -> bool:
    return any(os.strerror(number) in output for number in (errno.ENOSPC, errno.EDQUOT))


def _tell(state: str, **facts: object) -> None:
    sys.stdout.write(json.dumps({"format": FORMAT, "schema": SCHEMA, "state": state, **facts}) + "\n")
