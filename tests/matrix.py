"""The test suite on every installed Python: `make matrix`, or `python -m tests.matrix 3.11 3.13 --times 3`.

Each Python has an environment of its own under build/matrix, and a log beside it.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

_VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
_FOLDER = Path("build/matrix")
_SUMMARY = re.compile(r"^(?:=+ )?(\d+ (?:passed|failed|errors?)\b.*?)(?: =+)?$", re.MULTILINE)


def interpreter(version: str) -> str | None:
    """Return the path of an installed Python of this version; None without one."""
    root = Path(os.environ.get("PYENV_ROOT") or "~/.pyenv").expanduser()
    candidates = [shutil.which(f"python{version}"), *sorted(root.glob(f"versions/{version}.*/bin/python{version}"))]
    for candidate in candidates:
        # A shim of pyenv stands for Pythons that may not be chosen: it has to start.
        if candidate and not subprocess.run([candidate, "-c", ""], capture_output=True, check=False).returncode:
            return str(candidate)
    return None


def outcome(log: str, status: int) -> str:
    """Return what the log of `make test` ends in: the summary of pytest, or the line of the step that failed."""
    summaries = _SUMMARY.findall(log)
    lines = log.strip().splitlines()
    return summaries[-1] if summaries else f"exit code {status}: {lines[-1] if lines else 'no output'}"


def suite(version: str, python: str, number: int) -> tuple[bool, str]:
    """Run `make test` in the environment of this version."""
    folder = _FOLDER / version
    folder.mkdir(parents=True, exist_ok=True)
    path = _FOLDER / f"{version}-{number}.log"
    with path.open("w") as log:
        done = subprocess.run(
            ["make", "test", f"VENV={folder}", f"PYTHON={python}"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            check=False,
        )
    return not done.returncode, outcome(path.read_text(errors="replace"), done.returncode)


def main(arguments: list[str] | None = None) -> int:
    """Run the suites one after another, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.matrix", description=__doc__)
    parser.add_argument("versions", nargs="*", metavar="VERSION", help="one that has to be there (default: all)")
    parser.add_argument("--times", type=int, default=1, help="runs of each, in turn (1 unless given)")
    chosen = parser.parse_args(arguments)
    rows, failures = [], 0
    for number in range(1, chosen.times + 1):
        for version in chosen.versions or _VERSIONS:
            python = interpreter(version)
            if python is None:
                rows.append(f"{version:<7} not installed")
                failures += bool(chosen.versions)
                continue
            started = time.monotonic()
            is_green, ended = suite(version, python, number)
            failures += not is_green
            minutes = (time.monotonic() - started) / 60
            rows.append(f"{version:<7} {'green' if is_green else 'RED':<6} {minutes:5.1f} min  {ended}")
            print(rows[-1], file=sys.stderr, flush=True)
    print("\n".join(("Python  result     took  pytest", *rows)))
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
