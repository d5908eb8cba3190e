"""Suites on the side that measures, and their results on the side that has the models."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from dlbricks_tui.answers.measuring import MeasureOptions, request_of
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.measure.method import Method
from dlbricks_tui.runs.request import RunRequest, RuntimeChoice, SuiteChoice
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.traits import TRAITS
from dlbricks_tui.runtime.variant import several
from dlbricks_tui.share.errors import ShareError
from dlbricks_tui.share.suites.key_file import key_path, read_key
from dlbricks_tui.share.suites.manifest import Manifest
from dlbricks_tui.share.suites.results_file import SuiteImport, import_results, method_of, read_results
from dlbricks_tui.share.suites.suite_files import open_suite
from dlbricks_tui.store.database import ResultsDatabase


class SuiteRun(NamedTuple):
    """The request of a run, and the titles of frameworks whose bricks it leaves out as they are not installed."""

    request: RunRequest
    absent: tuple[str, ...]


def suite_run_at(options: MeasureOptions, suite: Path, results: Path, data: DataFolder) -> SuiteRun:
    """Return the request of a run that measures a suite and writes a file with its results.

    Raise ShareError for a suite that cannot be read, or a place that is none for a file.
    """
    # Before a run of it waits for its turn.
    with open_suite(suite) as opened:
        manifest = opened.manifest
    if not results.absolute().parent.is_dir():
        raise ShareError(f"-o {results}: there is no folder {results.absolute().parent}")
    if results.is_dir():
        raise ShareError(f"-o {results}: that is a folder; name a file in it")
    return suite_run(options, manifest, SuiteChoice(suite.absolute(), results.absolute()), data)


def suite_run(options: MeasureOptions, manifest: Manifest, choice: SuiteChoice, data: DataFolder) -> SuiteRun:
    """Return the request of a run that measures a suite by the installed runtimes that it is for, or by named ones."""
    runtimes = _runtimes(options, manifest, Registry(data.path))
    choices = [
        RuntimeChoice(runtime.with_threads(threads), (), method_of(runtime.framework))
        for runtime in runtimes
        for threads in several(options.threads) or (None,)
    ]
    if options.fixed_runs is not None and any(it.method is Method.INSIDE for it in choices):
        raise ShareError("a fixed number of runs applies to bricks of MXNet models only: leave it out for ONNX models")
    request = replace(request_of(options, choices[0], *choices[1:]), suite=choice, level=manifest.level)
    present = {runtime.framework for runtime in runtimes}
    absent = tuple(TRAITS[name].title for name in manifest.frameworks if name not in present)
    return SuiteRun(request, absent)


def _runtimes(options: MeasureOptions, manifest: Manifest, registry: Registry) -> Sequence[Runtime]:
    wanted = " or ".join(TRAITS[name].title for name in manifest.frameworks)
    named = [registry.find_installed(name) for name in several(options.runtime)]
    for runtime in named:
        if runtime.framework not in manifest.frameworks:
            raise ShareError(
                f"runtime {runtime.name} is {runtime.traits.title}, and the suite is for {wanted}; "
                "name another --runtime, or none"
            )
    installed = [it for it in registry.all() if it.computes_in(manifest.precision)]
    first = [next((it for it in installed if it.framework == name), None) for name in manifest.frameworks]
    found = named or [runtime for runtime in first if runtime is not None]
    if not found:
        raise ShareError(
            f"the suite is for {wanted} in {manifest.precision.value}, and no such runtime is installed here: "
            f"{TRAITS[manifest.frameworks[0]].install_here}"
        )
    return [runtime.with_precision(manifest.precision) for runtime in found]


def import_suite_results(store: ResultsDatabase, path: Path, data: DataFolder, key: Path | None = None) -> SuiteImport:
    """Store the results of the private models' bricks; without a key file, that in the data folder counts."""
    results = read_results(path)
    return import_results(store, read_key(key or key_path(data, results.suite)), results, str(path))
