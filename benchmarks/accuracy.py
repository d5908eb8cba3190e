"""Measure how close estimates come to end-to-end latencies, and write the report docs/accuracy.md.

usage: python -m benchmarks.accuracy [--data-dir DIR] [--level LEVEL ...] [--runtime R] [--report-only] [-o DOCS]
       [MODEL ...]

Without models it is the fifty of Table 1, and apart from them the networks of the Gluon zoo, networks that are made up
by chance, networks of other kinds than images, ONNX models (those that the onnx package holds for its tests, and a
transformer's encoder), and what `gluoncv_networks` has written to DIR/gluoncv, if anything. All but the fifty and ONNX
models have data folders of their own below DIR: no brick that was measured for the fifty helps to estimate them. What
the folders hold already is not measured again, so that the same command goes on after an interruption, unless it says
little: where samples leave an estimate in doubt by a tenth of it, or the host was another one by a tenth for a model
than for its bricks, all are taken once more, be the estimate right or wrong. A quiet host needs an hour and more for
all. The fifty are measured once more on ONNX Runtime with one thread; `--runtime onnxruntime` measures only these, or
the named models by that runtime. What other hosts have measured and somebody has imported into the folders is reported
beside it.
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
    OTHER_KINDS,
    ZOO,
    Group,
    report,
)
from benchmarks.command_line import ROOT, dlbricks, told
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.models.library import TABLE1_PREFIX, Library
from dlbricks_tui.runtime.traits import MXNET, ONNX_RUNTIME, Format

DEFAULT_DATA = ROOT / "build" / "accuracy"
REPORT = "accuracy.md"
# Models with so many bricks in common, of those that either has, are measured in one run, and so is who is like these.
ALIKE = 0.1
# Samples that leave an estimate in doubt by more than this share of it were of a restless minute.
MOST_DOUBT = 0.1
# Where the host has changed by more than this between the bricks and the model, neither says much about the other.
MOST_CHANGE = 0.1


def main() -> int:
    """Measures, then reports."""
    arguments = parsed()
    data = arguments.data_dir.absolute()
    groups = groups_of(data, arguments.models, arguments.level or LEVELS, arguments.runtime)
    if not arguments.report_only:
        for group in [it for it in groups if arguments.runtime in (None, it.runtime)]:
            for level in group.levels:
                for family in families(group, level):
                    measure(group, family, level)
    arguments.output.mkdir(parents=True, exist_ok=True)
    files = samples_of(groups)
    (arguments.output / REPORT).write_text("\n".join(report(groups, files)) + "\n")
    for folder, name in files.items():
        export(folder, arguments.output / name)
    return 0


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--data-dir", type=Path, default=DEFAULT_DATA)
    parser.add_argument("--level", action="append", choices=LEVELS)
    parser.add_argument("--runtime", help="a framework, such as onnxruntime")
    parser.add_argument("--report-only", action="store_true", help="measure nothing")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "docs")
    return parser.parse_args()


def groups_of(data: Path, models: Sequence[str], levels: Sequence[str], runtime: str | None = None) -> Sequence[Group]:
    """What is reported together."""
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
    onnx_models.main(data / "onnx")
    files = sorted(map(str, (data / "onnx").glob("*.onnx")))
    one_thread = {"OMP_NUM_THREADS": "1"}
    by_onnx_runtime = Group(FIFTY_BY_ONNX_RUNTIME, fifty, LEVELS[:1], data, one_thread, ONNX_RUNTIME.framework)
    return [*groups, Group(ONNX, files, LEVELS[:1], data, one_thread), by_onnx_runtime]


def samples_of(groups: Iterable[Group]) -> dict[Path, str]:
    """The data folders of the groups, each with the name of the file that its results are written to."""
    first, *others = dict.fromkeys(group.data for group in groups)
    return {first: "accuracy-results.json.gz", **{it: f"accuracy-results-{it.name}.json.gz" for it in others}}


def families(group: Group, level: str) -> Iterator[Sequence[str]]:
    """The models by what they share.

    Hosts change: a model is not to be estimated by bricks that another one needed in another hour, nor by those that
    another one is measured again with.
    """
    found = told(group.data, "corpus", *group.words, "--level", level, settings=group.settings)
    left = list(range(len(group.models)))
    # Where one of them cannot be read, nobody knows which is which.
    shared = found["jaccard"] if found and len(found["models"]) == len(left) else None
    while left:
        family = [left.pop(0)]
        # Whoever joins brings those along that are like it.
        for member in family:
            alike = [it for it in left if shared and shared[member][it] >= ALIKE]
            family += alike
            left = [it for it in left if it not in alike]
        yield [group.models[it] for it in sorted(family)]


def measure(group: Group, models: Sequence[str], level: str) -> None:
    """Bricks and end to end; a model that cannot be fused is measured as it is written, which is told."""
    words = ("run", *models, *group.runtime_words, "--level", level, "--end-to-end")
    status = dlbricks(group.data, *words, settings=group.settings)
    if not status and in_doubt(group, models, level):
        status = dlbricks(group.data, *words, "--again", settings=group.settings)
    print(f"{', '.join(models)} {level}: {f'exit status {status}' if status else 'done'}", flush=True)


def in_doubt(group: Group, models: Sequence[str], level: str) -> bool:
    """Whether what was measured of any of them says little, be its estimate right or wrong."""
    estimates = told(group.data, "estimate", *models, *group.runtime_words, "--level", level, settings=group.settings)
    residuals = [(it["residual"], it["sequential_ms"]) for it in estimates or () if it["residual"]]
    return any(
        residual["sampling_ms"] > MOST_DOUBT * estimate_ms or abs(residual["times_slower"] - 1) > MOST_CHANGE
        for residual, estimate_ms in residuals
    )


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
