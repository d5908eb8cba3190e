"""The version of oneDNN in a runtime.

oneDNN tells it in front of its first line of output, where its settings make it print. So a worker with these settings
runs a small network once, apart from what is timed. The answer is kept in the cache: it holds for an installed package.
"""

import hashlib
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from dlbricks_tui.atomic_write import write_atomically
from dlbricks_tui.measure.reference import reference_program
from dlbricks_tui.regular_files import read_text
from dlbricks_tui.runtime.errors import WorkerError
from dlbricks_tui.runtime.process import INSIDE, Worker
from dlbricks_tui.runtime.protocol import Explain
from dlbricks_tui.runtime.runtime import UNTUNED, Runtime
from dlbricks_tui.store.records import Provenance

# The name among the packages, and the folder in the cache.
ONEDNN = "onednn"
_SECONDS = 60.0
_TOLD = re.compile(r",oneDNN v(\S+)(?: \(commit (\w+)\))?")
_COMMIT_DIGITS = 12


def with_known_onednn(found: Provenance, runtime: Runtime, cache: Path) -> Provenance:
    """Return where results come from, with the version of oneDNN if that is in the cache."""
    return _with_version(found, _known(found, runtime, cache) or "")


def with_onednn(found: Provenance, runtime: Runtime, cache: Path, log: Path, program: Path = INSIDE) -> Provenance:
    """Return where results come from, with the version of oneDNN from the cache or from a worker, if it tells one."""
    known = _known(found, runtime, cache)
    if known is None:
        network = reference_program(runtime.traits.format).network
        try:
            with Worker(replace(runtime, settings=UNTUNED).for_explaining(), log, program) as worker:
                known = version_told(it.line for it in worker.ask(Explain(network), _SECONDS).lines)
        except WorkerError:
            # Not kept in the cache: the next run asks again.
            return found
        # Without a cache, it asks again, too.
        with suppress(OSError):
            write_atomically(_file(found, runtime, cache), f"{known}\n")
    return _with_version(found, known)


def version_told(lines: Iterable[str]) -> str:
    """Return the version of oneDNN in its output: `2.4.0 (commit 0123456789ab)`; empty if it does not tell."""
    told = next((match for line in lines if (match := _TOLD.search(line))), None)
    if told is None:
        return ""
    return f"{told[1]} (commit {told[2][:_COMMIT_DIGITS]})" if told[2] else told[1]


def _known(found: Provenance, runtime: Runtime, cache: Path) -> str | None:
    """Return the version in the cache; empty if there is none to find out, None if it has to be asked for."""
    if not runtime.traits.explaining_settings or ONEDNN in dict(found.packages):
        return ""
    with suppress(OSError, UnicodeDecodeError):
        return read_text(_file(found, runtime, cache)).strip()
    return None


def _with_version(found: Provenance, version: str) -> Provenance:
    return replace(found, packages=(*found.packages, (ONEDNN, version))) if version else found


def _file(found: Provenance, runtime: Runtime, cache: Path) -> Path:
    # Another build of a framework has another oneDNN.
    installed = repr((runtime.python, [it for it in found.packages if it[0] != "dlbricks"]))
    return cache / ONEDNN / hashlib.sha256(installed.encode()).hexdigest()[:16]
