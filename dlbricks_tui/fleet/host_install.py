"""Make the environment of a fleet on a host, run by the Python of that host.

This file is sent as text, with a call of `prepare` or of `install` at its end. It needs only the standard library and
no rights beyond those of the user. An environment is made in a folder of its own, and the link to it changes when it is
complete: a half-made one is never used.
"""

from __future__ import annotations

import errno
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

FORMAT = "dlbricks-host-install"
SCHEMA = 1
ENVIRONMENT = "venv"
ENVIRONMENTS = "venvs"
# Files on their way to the host.
INCOMING = "incoming"
# In an environment that is complete.
COMPLETE = "complete"

_LOCK = "lock"
_SECONDS_BETWEEN_TRIES = 0.5
_MOST_CHARACTERS = 20000
# Variables that lead pip or the interpreter to another place.
_LEFT_OUT = ("PYTHONPATH", "PYTHONHOME", "PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT")
# Hosts without a route to the package index wait for nothing else.
_PIP = ("-m", "pip", "--no-input", "--disable-pip-version-check", "--retries", "2", "--timeout", "20")


def prepare(folder: str, token: str) -> None:
    """Make the folder that files are sent to, which only this user can read."""
    try:
        incoming = Path(folder).expanduser().absolute() / INCOMING / token
        incoming.mkdir(mode=0o700, parents=True)
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
    seconds: float,
) -> None:
    """Make an environment with the wheel that was sent, its extras, and packages of these versions, and use it.

    `content` tells wheels of the same version apart. With `all_wheels`, nothing but the wheels that were sent is used.
    """
    place = Path(folder).expanduser().absolute()
    incoming = place / INCOMING / token
    name = _name([content, extras, versions])
    what = f"{incoming / wheel}[{','.join(extras)}]"
    constraints = incoming / "versions.txt"
    source = ["--no-index", "--find-links", str(incoming)] if all_wheels else []
    options = ["--no-cache-dir", *source, "--constraint", str(constraints), what]
    try:
        constraints.write_text("".join(f"{name}=={version}\n" for name, version in sorted(versions.items())))
        (place / ENVIRONMENTS).mkdir(exist_ok=True)
        with (place / ENVIRONMENTS / _LOCK).open("ab") as lock:
            # Hosts may share the folder.
            if _taken(lock.fileno(), seconds):
                _make(place, incoming, name, options)
            else:
                _tell("failed", step="lock")
    except OSError as error:
        _tell("failed", step="folder", output=str(error), is_full=_is_full(error))
    finally:
        shutil.rmtree(str(incoming), ignore_errors=True)


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


def _make(place: Path, incoming: Path, name: str, options: list[str]) -> None:
    link, target = place / ENVIRONMENT, place / ENVIRONMENTS / name
    if link.exists() and not link.is_symlink():
        return _tell("failed", step="link")
    if not (target / COMPLETE).exists():
        # What an earlier attempt left there.
        shutil.rmtree(str(target), ignore_errors=True)
        pip = [str(target / "bin" / "python"), *_PIP, "install", *options]
        for step, command in (("venv", [sys.executable, "-m", "venv", str(target)]), ("pip", pip)):
            output = _failure_of(command, incoming)
            if output is not None:
                shutil.rmtree(str(target), ignore_errors=True)
                return _tell("failed", step=step, output=output, is_full=_says_full(output))
        (target / COMPLETE).touch()
    before = Path(os.path.realpath(str(link)))
    _lead(link, target)
    return _tell("done", environment=str(target), removed=_remove_others(target.parent, (target, before)))


def _name(deciding: list[object]) -> str:
    """Return the name of the environment, which follows from all that decides what is in it."""
    facts = json.dumps([*deciding, platform.python_version(), platform.machine()], sort_keys=True)
    return f"{platform.python_version()}-{hashlib.sha256(facts.encode()).hexdigest()[:12]}"


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
    os.replace(str(draft), str(link))


def _remove_others(environments: Path, kept: tuple[Path, ...]) -> int:
    """Remove the environments that no process uses any more.

    The last one is kept, too: another host that shares the folder may use it.
    """
    others = [it for it in environments.iterdir() if it.is_dir() and it not in kept and not _in_use(it)]
    for folder in others:
        shutil.rmtree(str(folder), ignore_errors=True)
    return len(others)


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
