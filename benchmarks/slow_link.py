"""Measure the response of the workbench over a link of 10 KB/s while a run measures, with and without its savings.

usage: python -m benchmarks.slow_link [SECONDS]

What is timed is what a person sees: from the key that is pressed to the moment when the last byte that it changes has
come through the link, together with all that the run has drawn meanwhile. The promise: at the 95th percentile half a
second for a step in a list, and a second for what draws large parts of the screen anew.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.promises import Promise, at_most, judge
from benchmarks.terminal import Terminal

BYTES_PER_SECOND = 10_000
# As much as a segment of a slow link carries: what is under way cannot be called back.
CHUNK = 500
SIZE = (120, 40)
MODEL = "inceptionv3"
# The last one is what the promises are of.
PROFILES: Mapping[str, Mapping[str, str]] = {
    "local": {"DLBRICKS_WORKBENCH_REMOTE": "off"},
    "remote": {"DLBRICKS_WORKBENCH_REMOTE": "on"},
}
# A person looks before the next key.
SECONDS_BETWEEN_KEYS = 0.4
HELD_KEYS = 30
# Between two chunks of the same repaint there is none as long as this.
GAP_SECONDS = 2 * CHUNK / BYTES_PER_SECOND


class SlowTerminal(Terminal):
    """A terminal at the far end of a link that lets only so many bytes a second through."""

    # Nothing is slow until it is wanted: what comes before is not what is measured.
    slow = False

    def _read(self, patience: float, most: int = CHUNK) -> bool:
        if not self.slow:
            return super()._read(patience)
        before = len(self.written)
        if not super()._read(patience, most):
            return False
        # It is here only when the last of it is.
        time.sleep((len(self.written) - before) / BYTES_PER_SECOND)
        return True


@dataclass(frozen=True, slots=True)
class Doing:
    """A series of keys, each with a text that its repaint holds."""

    name: str
    keys: tuple[tuple[str, str], ...]
    most_ms: float


DOINGS = (
    Doing("a step in a list", (("j", "▸"), ("k", "▸")), 500),
    Doing("from panel to panel", (("2", "Decomposition"), ("1", "Models")), 500),
    # In the middle of what the help had covered, whatever of it is drawn again.
    Doing("help and back", (("?", "Help"), ("\x1b", "branches")), 1000),
)


def main() -> int:
    """Starts a run, and works in the workbench while it goes on, by one profile after the other."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 20.0
    for name, profile in PROFILES.items():
        with tempfile.TemporaryDirectory() as folder:
            environment = {**profile, "TERM": "xterm-256color", "DLBRICKS_HOST_LOCK": f"{folder}/host.lock"}
            found = _measure(name, Path(folder), environment, seconds)
    return judge(found)


def _measure(name: str, folder: Path, environment: Mapping[str, str], seconds: float) -> list[Promise]:
    dlbricks = [sys.executable, "-m", "dlbricks_tui", "--data-dir", str(folder)]

    def command(*arguments: str) -> None:
        subprocess.run([*dlbricks, *arguments], env={**os.environ, **environment}, check=True, capture_output=True)

    command("tree", MODEL, "--level", "fused")
    command("run", MODEL, "--fixed-runs", "2000", "--detach")
    terminal = SlowTerminal(dlbricks, SIZE, environment)
    try:
        terminal.seconds_until("1 Models 9")
        for keys in ("/", MODEL, "\r", "\r"):
            terminal.send(keys)
            # The run writes all the time.
            terminal.read_for(1.0)
        # The search ends, so that there is a list to step in.
        terminal.send("1/\x1b")
        terminal.wait_until(lambda: " ms" in terminal.text_since(0), patience=90.0)
        terminal.read_for(3.0)
        terminal.slow = True
        return _report(name, terminal, seconds)
    finally:
        terminal.close()
        command("runs", "cancel", "last")


def _report(name: str, terminal: SlowTerminal, seconds: float) -> list[Promise]:
    print(f"{name}: {BYTES_PER_SECOND:,} bytes/s, {SIZE[0]}x{SIZE[1]}, while {MODEL} is measured")
    print(f"  written by itself     {terminal.read_for(seconds) / seconds:7.0f} bytes/s")
    promises = []
    for doing in DOINGS:
        times, sizes = list[float](), list[int]()
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            before = len(terminal.written)
            times.append(_seen(terminal, *doing.keys[len(times) % len(doing.keys)]))
            sizes.append(len(terminal.written) - before)
            terminal.read_for(SECONDS_BETWEEN_KEYS)
        at_worst = statistics.quantiles(times, n=20)[-1] if len(times) > 1 else times[0]
        print(
            f"  {doing.name:20s}  {1000 * statistics.median(times):7.0f} ms, {1000 * at_worst:.0f} ms at the 95th "
            f"percentile of {len(times)}, {statistics.median(sizes):,.0f} bytes"
        )
        promises.append(at_most(doing.most_ms, "ms", f"{doing.name}, 95th percentile", 1000 * at_worst))
    terminal.send("j" * HELD_KEYS)
    print(f"  {HELD_KEYS} steps at once      {1000 * terminal.seconds_until_quiet(0.3):7.0f} ms until all are drawn")
    return promises


def _seen(terminal: SlowTerminal, pressed: str, wanted: str) -> float:
    place, start = len(terminal.written), time.perf_counter()
    terminal.send(pressed)
    terminal.wait_until(lambda: wanted in terminal.text_since(place))
    # The rest of the same repaint is in the link already, and comes without a gap.
    seen = time.perf_counter() - start
    return seen + terminal.seconds_until_quiet(GAP_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
