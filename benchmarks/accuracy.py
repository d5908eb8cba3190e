"""How close estimates come to what models take: measures both, and writes the report that docs/accuracy.md is.

usage: python -m benchmarks.accuracy [--data-dir DIR] [--level LEVEL ...] [--report-only] [-o DOCS] [MODEL ...]

Without models it is the fifty of Table 1, and apart from them the networks of the Gluon zoo. What the data folder
holds already is not measured again, so that the same command goes on after an interruption. A quiet host needs an
hour and more for everything.
"""

import argparse
import gzip
import io
import json
import math
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dlbricks_tui.models.library import TABLE1_PREFIX, Library
from dlbricks_tui.settings import SAMPLE_MODELS

ROOT = Path(__file__).parents[1]
DEFAULT_DATA = ROOT / "build" / "accuracy"
LEVELS = ("fused", "written")
REPORT, SAMPLES = "accuracy.md", "accuracy-results.json.gz"


@dataclass(frozen=True)
class Judged:
    """A model that is known in both ways."""

    model: str
    sequential_ms: float
    low_ms: float
    high_ms: float
    measured_ms: float

    @property
    def error(self) -> float:
        return self.sequential_ms / self.measured_ms - 1

    @property
    def inside(self) -> bool:
        return self.low_ms <= self.measured_ms <= self.high_ms


def main() -> int:
    """Measures, then reports."""
    arguments = parsed()
    data = arguments.data_dir.absolute()
    groups = groups_of(data, arguments.models)
    levels = arguments.level or LEVELS
    if not arguments.report_only:
        for level in levels:
            for names in groups.values():
                for name in names:
                    measure(data, name, level)
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / REPORT).write_text("\n".join(report(data, groups, levels)) + "\n")
    export(data, arguments.output / SAMPLES)
    return 0


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--data-dir", type=Path, default=DEFAULT_DATA)
    parser.add_argument("--level", action="append", choices=LEVELS)
    parser.add_argument("--report-only", action="store_true", help="measure nothing")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "docs")
    return parser.parse_args()


def groups_of(data: Path, models: Sequence[str]) -> dict[str, list[str]]:
    """What is reported together, by its title."""
    if models:
        return {"Chosen models": list(models)}
    samples = Library(SAMPLE_MODELS, data).samples()
    return {
        "The fifty models": [f"{TABLE1_PREFIX}:{it.table1_id}" for it in samples if it.table1_id],
        "The Gluon zoo": [it.name for it in samples if not it.table1_id],
    }


def measure(data: Path, model: str, level: str) -> None:
    """Bricks and end to end; a model that cannot be fused is measured as it is written, which is told."""
    asked = dlbricks(data, "run", model, "--level", level, "--end-to-end", capture=False)
    print(f"{model} {level}: {'done' if asked.returncode == 0 else f'exit status {asked.returncode}'}", flush=True)


def dlbricks(data: Path, *words: str, capture: bool = True) -> "subprocess.CompletedProcess[str]":
    """Runs the command line as a person would."""
    command = [sys.executable, "-m", "dlbricks_tui", "--data-dir", str(data), *words]
    return subprocess.run(command, cwd=ROOT, text=True, stdout=subprocess.PIPE if capture else None, check=False)


def report(data: Path, groups: dict[str, list[str]], levels: Sequence[str]) -> Iterator[str]:
    """The lines of the report."""
    yield "# Accuracy"
    yield ""
    yield "Estimate over end to end at G=1 and batch 1, both measured here in the same rounds. Written by"
    yield "`make accuracy`; every sample is in [accuracy-results.json.gz](accuracy-results.json.gz), which"
    yield "`dlbricks results import` reads. How the numbers come about is told in [measuring](measuring.md)."
    yield ""
    for system in json.loads(dlbricks(data, "systems", "--json").stdout):
        for kind in system["results"]:
            yield f"{system['name']} (`{system['system']}`), `{kind['runtime']}`, {kind['level']}: "
            yield f"{kind['bricks']:,} bricks in their contexts, {kind['models']} networks end to end."
            yield ""
    sections = [(title, level, judged(data, names, level)) for level in levels for title, names in groups.items()]
    yield from summary([section for section in sections if section[2]])
    for title, level, models in sections:
        if models:
            yield from table(title, level, models)


def judged(data: Path, names: Sequence[str], level: str) -> list[Judged]:
    """The models whose estimate is complete and that were timed end to end."""
    answer = dlbricks(data, "estimate", *names, "--level", level, "--json").stdout
    found: list[dict[str, Any]] = json.loads(answer) if answer else []
    return [
        Judged(it["model"], it["sequential_ms"], it["interval_ms"][0], it["interval_ms"][1], it["measured_ms"])
        for it in found
        if it["complete"] and it["measured_ms"]
    ]


def summary(sections: Iterable[tuple[str, str, list[Judged]]]) -> Iterator[str]:
    """A line for each group and level, beside what the paper's own data give."""
    yield "| | level | models | geometric mean | mean absolute error | worst | within 5 % | within 10 % | in interval |"
    yield "|---|---|--:|--:|--:|--:|--:|--:|--:|"
    for title, level, models in sections:
        errors = [it.error for it in models]
        mean = math.exp(math.fsum(math.log1p(error) for error in errors) / len(errors))
        absolute = math.fsum(map(abs, errors)) / len(errors)
        shares = [sum(abs(error) <= limit for error in errors) / len(errors) for limit in (0.05, 0.1)]
        inside = sum(it.inside for it in models) / len(models)
        worst = max(errors, key=abs)
        yield (
            f"| {title} | {level} | {len(models)} | {mean:.3f} | {absolute:.1%} | {worst:+.1%} "
            f"| {shares[0]:.0%} | {shares[1]:.0%} | {inside:.0%} |"
        )
    yield "| the paper's data, c5.xlarge, MXNet-MKL 1.5.1 | written | 49 | 0.969 | 3.1% | | 82% | | |"
    yield ""


def table(title: str, level: str, models: Iterable[Judged]) -> Iterator[str]:
    """Every model of a group at a level."""
    yield f"## {title}, {level}"
    yield ""
    yield "| model | estimate ms | 95 % interval | end to end ms | error |"
    yield "|---|--:|--:|--:|--:|"
    for it in models:
        interval = f"{it.low_ms:.2f} to {it.high_ms:.2f}"
        yield f"| {it.model} | {it.sequential_ms:.2f} | {interval} | {it.measured_ms:.2f} | {it.error:+.1%} |"
    yield ""


def export(data: Path, target: Path) -> None:
    """All results with their samples, compressed."""
    plain = data / "accuracy-results.json"
    dlbricks(data, "results", "export", str(plain), "--force")
    content = io.BytesIO()
    with gzip.GzipFile(fileobj=content, mode="wb", mtime=0) as packed:
        packed.write(plain.read_bytes())
    target.write_bytes(content.getvalue())


if __name__ == "__main__":
    sys.exit(main())
