"""Measure how close estimates come to end-to-end latencies, and write the figures that docs/accuracy.md shows.

usage: python -m benchmarks.accuracy [GROUP|FILE ...] [--runtime R] [--threads N] [--batch N] [--level LEVEL]
       [--data-dir DIR] [--again] [--publish]

Groups are `table1` (the fifty models of the paper), `gluon` (the Gluon model zoo), `onnx` (the samples of today's ONNX
models, the light networks of the onnx package, and a transformer encoder), `made-up` (networks of random structure) and
`other` (networks for words, speech and tables). Without any, the first three are measured. FILE is a model of your own,
whose figure is only printed.

Each network is measured by `dlbricks run MODEL --end-to-end` in a data folder of its own below DIR, so no estimate uses
a brick that was measured for another network, and both latencies are of the same minute. Networks that several models
share are measured once. Figures of a system, runtime, batch size and level that are known are measured again only with
--again. The new ones go to build/accuracy, outside of git. --publish measures nothing: it adds them to
docs/accuracy/inside.csv, and writes the tables and the picture of docs/accuracy.md.
"""

import argparse
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import made_up_networks, onnx_models
from benchmarks.accuracy_picture import picture
from benchmarks.accuracy_report import TITLES, Figure, read_figures, with_table, write_figures
from benchmarks.command_line import ROOT, told
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import TABLE1_PREFIX, Library
from dlbricks_tui.runtime.traits import Format

PAGE, PUBLISHED = ROOT / "docs" / "accuracy.md", ROOT / "docs" / "accuracy"
DEFAULT_DATA = ROOT / "build" / "accuracy"
FIGURES, PICTURE = "inside.csv", "estimates.svg"
TABLE1, GLUON, ONNX, MADE_UP, OTHER = "table1", "gluon", "onnx", "made-up", "other"
USUAL = (TABLE1, GLUON, ONNX)


@dataclass(frozen=True)
class Network:
    """A network to measure, under the name of one of its models."""

    group: str
    model: str
    # The number of models that are this network with other weights.
    models: int = 1


def main() -> int:
    """Measure what is not known yet, and write the figures after each network."""
    arguments = parsed()
    new = arguments.data_dir / FIGURES
    if arguments.publish:
        publish(read_figures(new))
        return 0
    failed = False
    for network in networks(arguments.groups or USUAL, arguments.data_dir):
        figures = read_figures(new)
        known = [*figures, *read_figures(PUBLISHED / FIGURES)]
        if not arguments.again and any(it.answers(network.model, *asked_of(arguments)) for it in known):
            continue
        figure = measured(network, arguments)
        if figure is None:
            print(f"{network.model}: failed", flush=True)
            failed = True
            continue
        print(f"{figure.model}: {figure.measured_ms:.3f} ms, {figure.error:+.1%}, {figure.seconds:.0f} s", flush=True)
        if network.group in TITLES:
            write_figures(new, together(figures, [figure]))
    return int(failed)


def parsed() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("groups", nargs="*", metavar="GROUP|FILE")
    parser.add_argument("--runtime", help="a framework, such as onnxruntime")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--level", choices=[level.value for level in Level], default=Level.FUSED.value)
    parser.add_argument("--data-dir", type=Path, default=DEFAULT_DATA)
    parser.add_argument("--again", action="store_true", help="measure known networks again")
    parser.add_argument("--publish", action="store_true", help="write docs/accuracy.md and its figures")
    return parser.parse_args()


def asked_of(arguments: argparse.Namespace) -> tuple[str | None, int | None, int, str]:
    return arguments.runtime, arguments.threads, arguments.batch, arguments.level


def networks(groups: Sequence[str], data: Path) -> Iterator[Network]:
    """Yield the networks of these groups, each once."""
    samples = Library(SAMPLE_MODELS, data).samples()
    for group in groups:
        if group == TABLE1:
            of_file: dict[Path, list[str]] = {}
            for it in samples:
                if it.table1_id:
                    of_file.setdefault(it.path, []).append(f"{TABLE1_PREFIX}:{it.table1_id}")
            yield from (Network(group, names[0], len(names)) for names in of_file.values())
        elif group == GLUON:
            yield from (Network(group, it.name) for it in samples if not it.table1_id and it.format is Format.MXNET)
        elif group == ONNX:
            onnx_models.write(data / group)
            yield from (Network(group, it.name) for it in samples if it.format is Format.ONNX)
            yield from (Network(group, str(it)) for it in sorted((data / group).glob("*.onnx")))
        elif group == MADE_UP:
            made_up_networks.main(data / group)
            yield from (Network(group, str(it)) for it in sorted((data / group).glob("*-symbol.json")))
        elif group == OTHER:
            # MXNet writes them, which stays out of this process.
            subprocess.run([sys.executable, "-m", "benchmarks.other_networks", str(data / group)], cwd=ROOT, check=True)
            yield from (Network(group, str(it)) for it in sorted((data / group).glob("*-symbol.json")))
        else:
            yield Network("files", str(Path(group).absolute()))


def measured(network: Network, arguments: argparse.Namespace) -> Figure | None:
    """Measure a network in a fresh data folder; return None if it has no complete estimate or no latency."""
    words = ["run", network.model, "--end-to-end", "--level", arguments.level, "--quiet"]
    for option in ("runtime", "threads", "batch"):
        value = getattr(arguments, option)
        if value is not None and (option, value) != ("batch", 1):
            words += [f"--{option}", str(value)]
    folder = arguments.data_dir / "run"
    shutil.rmtree(folder, ignore_errors=True)
    start = time.monotonic()
    done = told(folder, *words)
    seconds = time.monotonic() - start
    (found,) = done["models"] if done and done["models"] else ({},)
    if not found.get("complete") or not found.get("measured_ms"):
        return None
    low_ms, high_ms = found["interval_ms"]
    return Figure(
        group=network.group,
        model=found["model"],
        models=network.models,
        asked=network.model if network.model.startswith(TABLE1_PREFIX) else Path(network.model).name,
        runtime=found["runtime"],
        framework=arguments.runtime,
        threads=arguments.threads,
        batch=arguments.batch,
        level=arguments.level,
        system=found["system"],
        method=found["protocol"],
        estimate_ms=found["sequential_ms"],
        low_ms=low_ms,
        high_ms=high_ms,
        measured_ms=found["measured_ms"],
        own_carrier=found["coverage"]["own_carrier"] == found["coverage"]["measured"],
        seconds=round(seconds, 1),
    )


def together(known: Sequence[Figure], new: Sequence[Figure]) -> list[Figure]:
    """Return all figures in order; a new one replaces that of the same network and execution."""
    return [it for _, it in sorted({it.place: it for it in (*known, *new)}.items())]


def publish(new: Sequence[Figure]) -> None:
    """Add figures to the published ones, and write the table and the picture of the page."""
    found = together(read_figures(PUBLISHED / FIGURES), new)
    write_figures(PUBLISHED / FIGURES, found)
    (PUBLISHED / PICTURE).write_text(picture(found), encoding="utf-8")
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
