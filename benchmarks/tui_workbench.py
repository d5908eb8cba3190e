"""Measure the workbench with all models and 100,000 results: first paint, keys, idling, memory.

usage: python -m benchmarks.tui_workbench [RESULTS]

The promises: first paint in 0.5 s, a key repainted in 50 ms at the 95th percentile, also on each screen while a run
measures, at most 2 KB/s written while idle, 200 MB of memory after all screens were shown. Processor times and bytes of
a key depend little on what else the machine does.
"""

import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks.disturbance import processor_seconds, started, wait_for_end
from benchmarks.promises import Promise, at_most, judge
from benchmarks.store_scale import fill
from benchmarks.terminal import Terminal
from dlbricks_tui.tui.widgets.rows import CURSOR_SIGN

SIZE = (120, 40)
STARTS = 10
KEYS = 100
IDLE_SECONDS = 10.0
# Each screen with the keys that show it, from the workbench with an open model.
MODEL = "squeezenet1.1"
SCREENS = {
    "workbench": "",
    "run": "w",
    "results": "R",
    "corpus": "U",
    "systems": "S",
    "analysis": "A",
    "variants": "V",
    "scenario": "L",
    "fleet": "F",
    "trace": "T",
    "comparison": "  C",
}
KEYS_ON_A_SCREEN = 100
# A screen has read what it shows after so long.
SHOWN_SECONDS = 5.0
# A list of one row draws nothing anew.
PATIENCE_SECONDS = 1.0
ESCAPE = "\x1b"
# What stands on the first screen, and what follows when the library has been read.
FIRST, LISTED = "1 Models", "1 Models 9"


def main() -> int:
    """Fills a store, starts the workbench several times, and works in the last one."""
    results = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder) / "store", results)
        painted, listed = [], []
        for _ in range(STARTS):
            terminal = _started(folder)
            painted.append(terminal.seconds_until(FIRST))
            listed.append(painted[-1] + terminal.seconds_until(LISTED))
            terminal.close()
        terminal = _started(folder)
        terminal.seconds_until(LISTED)
        # Without folded groups the list has rows to step in.
        terminal.send("s")
        terminal.read_for(5.0)
        keys = [_repaint(terminal, "j" if number % 40 < 20 else "k") for number in range(KEYS)]
        idle = terminal.read_for(IDLE_SECONDS)
        terminal.close()
        on_screens, memory = _on_all_screens(Path(folder))
    print(f"{results:,} results; models listed after {1000 * statistics.median(listed):.0f} ms")
    print(f"first paint of {STARTS} at worst {1000 * max(painted):.0f} ms")
    return judge(
        [
            at_most(500, "ms", "first paint, the median", 1000 * statistics.median(painted)),
            at_most(50, "ms", "a key repainted, 95th percentile", 1000 * statistics.quantiles(keys, n=20)[-1]),
            *on_screens,
            at_most(2000, "bytes/s", "written while idle", idle / IDLE_SECONDS),
            at_most(200, "MB", "memory", memory / 2**20),
        ]
    )


def _started(folder: str) -> Terminal:
    return Terminal([sys.executable, "-m", "dlbricks_tui", "--data-dir", folder], SIZE, {})


def _on_all_screens(folder: Path) -> tuple[list[Promise], int]:
    """Step up and down on each screen while a run measures; return the promises, and the memory at the end."""
    run = started(folder, MODEL)
    terminal = _started(str(folder))
    try:
        terminal.seconds_until(LISTED)
        for keys in ("/", MODEL, "\r", "\r"):
            terminal.send(keys)
            terminal.read_for(1.0)
        terminal.send(f"1/{ESCAPE}")
        terminal.read_for(SHOWN_SECONDS)
        print(f"while {MODEL} is measured  key, median  95th percentile  processor  bytes  memory")
        promises = []
        for name, keys in SCREENS.items():
            for key in keys:
                terminal.send(key)
                terminal.read_for(0.3)
            terminal.read_for(SHOWN_SECONDS)
            promises += _steps_on(name, terminal)
            if keys:
                terminal.send(ESCAPE)
                terminal.read_for(1.0)
        return promises, terminal.memory_bytes()
    finally:
        terminal.close()
        run.cancel()
        wait_for_end(run)


def _steps_on(name: str, terminal: Terminal) -> list[Promise]:
    taken, busy, written = list[float](), processor_seconds(terminal.pid), len(terminal.written)
    for number in range(KEYS_ON_A_SCREEN):
        terminal.send("j" if number % 4 < 2 else "k")
        try:
            taken.append(terminal.seconds_until(CURSOR_SIGN, PATIENCE_SECONDS))
        except TimeoutError:
            break
    memory = f"{terminal.memory_bytes() / 2**20:.0f} MB"
    if len(taken) < KEYS_ON_A_SCREEN:
        print(f"  {name:24}  the list in front has no second row  {memory}")
        return []
    busy, written = processor_seconds(terminal.pid) - busy, len(terminal.written) - written
    at_worst = 1000 * statistics.quantiles(taken, n=20)[-1]
    print(
        f"  {name:24} {1000 * statistics.median(taken):8.1f} ms {at_worst:13.1f} ms "
        f"{1000 * busy / len(taken):7.1f} ms {written / len(taken):6.0f}  {memory}"
    )
    return [at_most(50, "ms", f"a key on the screen of {name}, 95th percentile", at_worst)]


def _repaint(terminal: Terminal, key: str) -> float:
    terminal.send(key)
    return terminal.seconds_until_quiet()


if __name__ == "__main__":
    sys.exit(main())
