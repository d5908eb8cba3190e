"""Measure how close estimates come to end-to-end latencies, and write the report docs/accuracy.md.

usage: python -m benchmarks.accuracy [--data-dir DIR] [--level LEVEL ...] [--runtime R] [--report-only] [-o DOCS]
       [MODEL ...]

Without models it measures the fifty of Table 1, the networks of the Gluon zoo, networks made up by chance, networks of
other kinds than images, and the networks of GluonCV where `benchmarks.gluoncv_networks` was run for DIR/gluoncv. On
ONNX Runtime it measures the fifty with one thread, and the ONNX samples, the light networks of the onnx package and a
transformer encoder with one thread and with all. `--runtime onnxruntime` measures only those, or the named models.

Models that share few bricks are measured in runs of their own, and each group but the fifty has its own data folder
below DIR. What the folders hold is not measured again, so the same command goes on after an interruption. A model is
measured a second time where samples leave more than a tenth of its estimate in doubt, or where the host was faster or
slower by a tenth for the model than for its bricks. A quiet host needs more than an hour for all. Results of other
hosts that were imported into the folders are reported too.
"""

import argparse
import gzip
import io
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from benchmarks import made_up_networks, onnx_models
from benchmarks.accuracy_report import (
    FIFTY,
    FIFTY_BY_ONNX_RUNTIME,
    GLUONCV,
    LEVELS,
    MADE_UP,
    ONNX,
    ONNX_ALL_THREADS,
    OTHER_KINDS,
    ZOO,
    Group,
    report,
    systems_in,
)
from benchmarks.command_line import ROOT, dlbricks, told
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.models.library import TABLE1_PREFIX, Library
from dlbricks_tui.runtime.traits import MXNET, ONNX_RUNTIME, Format

DEFAULT_DATA = ROOT / "build" / "accuracy"
REPORT = "accuracy.md"
# Models whose bricks overlap by this much (Jaccard index) are measured in one run.
ALIKE = 0.1
# A model is measured again if its samples leave more than this share of the estimate in doubt,
MOST_DOUBT = 0.1
# or if the host's speed differed by more than this between its bricks and the whole model.
MOST_CHANGE = 0.1


def main() -> int:
    """Measure, then report."""
    arguments = parsed()
    data = arguments.data_dir.absolute()
    groups = groups_of(data, arguments.models, arguments.level or LEVELS, arguments.runtime)
    if not arguments.report_only:
        for group in [it for it in groups if arguments.runtime in (None, it.runtime)]:
            for level in group.levels:
                for family in families(group, level):
                    measure(group, family, level)
    arguments.output.mkdir(parents=True, exist_ok=True)
    files = {folder: name for folder, name in samples_of(groups).items() if systems_in(folder)}
    (arguments.output / REPORT).write_text("\n".join(report(groups, files)) + "\n")
    for folder, name in files.items():
        export(folder, arguments.output / name)
    return 0


def parsed() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--data-dir", type=Path, default=DEFAULT_DATA)
    parser.add_argument("--level", action="append", choices=LEVELS)
    parser.add_argument("--runtime", help="a framework, such as onnxruntime")
    parser.add_argument("--report-only", action="store_true", help="measure nothing")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "docs")
    return parser.parse_args()


def groups_of(data: Path, models: Sequence[str], levels: Sequence[str], runtime: str | None = None) -> Sequence[Group]:
    """Return the groups of models that the report has sections for."""
    if models:
        return (Group("Chosen models", models, levels, data, runtime=runtime),)
    samples = Library(SAMPLE_MODELS, data).samples()
    made_up, gluoncv, other = data / "made-up", data / "gluoncv", data / "other"
    made_up_networks.main(made_up)
    # MXNet writes them, which here is for processes of their own.
    subprocess.run([sys.executable, "-m", "benchmarks.other_networks", str(other)], cwd=ROOT, check=False)
    fifty = [f"{TABLE1_PREFIX}:{it.table1_id}" for it in samples if it.table1_id]
    groups = [
        Group(FIFTY, fifty, levels, data, runtime=MXNET.framework),
        Group(ZOO, [it.name for it in samples if not it.table1_id and it.format is Format.MXNET], levels, data / "zoo"),
        Group(MADE_UP, sorted(map(str, made_up.glob("*-symbol.json"))), levels, made_up),
        Group(GLUONCV, sorted(map(str, gluoncv.glob("*-symbol.json"))), levels, gluoncv),
        Group(OTHER_KINDS, sorted(map(str, other.glob("*-symbol.json"))), levels, other),
    ]
    groups = [group for group in groups if group.models]
    if LEVELS[0] not in levels:
        return groups
    onnx = data / "onnx"
    onnx_models.main(onnx)
    models = [it.name for it in samples if it.format is Format.ONNX] + sorted(map(str, onnx.glob("*.onnx")))
    framework, one_thread = ONNX_RUNTIME.framework, {"OMP_NUM_THREADS": "1"}
    return [
        *groups,
        Group(FIFTY_BY_ONNX_RUNTIME, fifty, LEVELS[:1], data, one_thread, framework),
        Group(ONNX, models, LEVELS[:1], onnx, one_thread, framework),
        Group(ONNX_ALL_THREADS, models, LEVELS[:1], onnx, runtime=framework),
    ]


def samples_of(groups: Iterable[Group]) -> dict[Path, str]:
    """The data folders of the groups, each with the name of the file that its results are written to."""
    first, *others = dict.fromkeys(group.data for group in groups)
    return {first: "accuracy-results.json.gz", **{it: f"accuracy-results-{it.name}.json.gz" for it in others}}


def families(group: Group, level: str) -> Iterator[Sequence[str]]:
    """Yield models that share many bricks together.

    Hosts change: the estimate of a model must not depend on bricks that another run measured an hour before.
    """
    found = told(group.data, "corpus", *group.words, "--level", level, settings=group.settings)
    left = list(range(len(group.models)))
    # If a model cannot be read, the rows of the matrix are not those of the models.
    shared = found["jaccard"] if found and len(found["models"]) == len(left) else None
    while left:
        family = [left.pop(0)]
        # The list grows in the loop: models like a new member join too.
        for member in family:
            alike = [it for it in left if shared and shared[member][it] >= ALIKE]
            family += alike
            left = [it for it in left if it not in alike]
        yield [group.models[it] for it in sorted(family)]


def measure(group: Group, models: Sequence[str], level: str) -> None:
    """Measure the bricks and the models end to end, a second time where the first says little."""
    words = ("run", *models, *group.runtime_words, "--level", level, "--end-to-end")
    status = dlbricks(group.data, *words, settings=group.settings)
    if not status and in_doubt(group, models, level):
        status = dlbricks(group.data, *words, "--again", settings=group.settings)
    print(f"{', '.join(models)} {level}: {f'exit status {status}' if status else 'done'}", flush=True)


def in_doubt(group: Group, models: Sequence[str], level: str) -> bool:
    """Return whether noise or a change of the host makes any of the estimates say little, right or wrong."""
    estimates = told(group.data, "estimate", *models, *group.runtime_words, "--level", level, settings=group.settings)
    residuals = [(it["residual"], it["sequential_ms"]) for it in estimates or () if it["residual"]]
    return any(
        residual["sampling_ms"] > MOST_DOUBT * estimate_ms or abs(residual["times_slower"] - 1) > MOST_CHANGE
        for residual, estimate_ms in residuals
    )


def export(data: Path, target: Path) -> None:
    """Write all results with their samples, compressed."""
    plain = data / "accuracy-results.json"
    dlbricks(data, "results", "export", str(plain), "--force")
    content = io.BytesIO()
    with gzip.GzipFile(fileobj=content, mode="wb", mtime=0) as packed:
        packed.write(plain.read_bytes())
    target.write_bytes(content.getvalue())


if __name__ == "__main__":
    sys.exit(main())
