"""Import a checkout of the authors' repository, file by file."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.dlbricks_2019.checkout import BrokenFileError, Row, TimesFile, systems_of
from dlbricks_tui.store.dlbricks_2019.models import PublishedModels
from dlbricks_tui.store.dlbricks_2019.results import RUNTIME, RowResult, UnusableRowError, result_of, system_of
from dlbricks_tui.store.errors import ExchangeError

_LONGEST_NAME = 120


@dataclass(frozen=True, slots=True)
class UnmatchedRow:
    """A row about a model of Table 1 that gives no result, with the reason."""

    file: str
    line: int
    model: str
    layer: str | None
    reason: str

    def __str__(self) -> str:
        what = self.model if self.layer is None else f"{self.model}: layer {self.layer!r}"
        return f"{self.file} line {self.line}: {what} {self.reason}"


@dataclass(slots=True)
class SystemReport:
    """The outcome for one system of a checkout."""

    system: str
    new: int = 0
    known: int = 0
    # The models with results of layers, and those timed end to end.
    by_layers: set[str] = field(default_factory=set)
    end_to_end: set[str] = field(default_factory=set)
    unmatched: list[UnmatchedRow] = field(default_factory=list)
    # The number of rows about each model outside of Table 1.
    outside: Counter[str] = field(default_factory=Counter)
    # The files that were skipped, each with the reason.
    broken: list[str] = field(default_factory=list)


def import_checkout(store: ResultsDatabase, checkout: Path, models: PublishedModels) -> Iterator[SystemReport]:
    """Import the authors' measurements, system by system; known results are skipped."""
    systems = systems_of(checkout)
    if not systems:
        raise ExchangeError(
            f"{checkout} has no folder data/mxnet_model/SYSTEM and no data/mxnet_layer_sequence/seq_0/SYSTEM: "
            "name a checkout of github.com/rai-project/synthetic_benchmark"
        )
    for system, files in systems:
        importing = _SystemImport(store, checkout, models, SystemReport(system))
        for file in files:
            importing.add(file)
        yield importing.report


@dataclass(frozen=True, slots=True)
class _SystemImport:
    """The import of one system's files."""

    store: ResultsDatabase
    checkout: Path
    models: PublishedModels
    report: SystemReport

    def add(self, file: TimesFile) -> None:
        """Store all results of a file at once, or report it as broken."""
        name = str(file.path.relative_to(self.checkout))
        try:
            rows = file.rows()
        except BrokenFileError as broken:
            self.report.broken.append(f"{name} {broken}")
            return
        results = list(self._results(rows, name))
        if results:
            forms = dict.fromkeys(each.form for each in results if each.form is not None)
            # Definitions first: a crash must not leave results that refer to nothing.
            self.store.add(system_of(self.report.system), RUNTIME, *forms)
            new = self.store.add(*(each.result for each in results))
            self.report.new += new
            self.report.known += len(results) - new

    def _results(self, rows: Iterable[Row], file: str) -> Iterator[RowResult]:
        for row in rows:
            model = self.models.find(row.model)
            if model is None:
                self.report.outside[row.model[:_LONGEST_NAME]] += 1
                continue
            try:
                found = result_of(row, model, self.report.system)
            except UnusableRowError as error:
                layer = None if row.layer is None else row.layer[:_LONGEST_NAME]
                self.report.unmatched.append(UnmatchedRow(file, row.line, model.name, layer, str(error)))
                continue
            (self.report.end_to_end if row.layer is None else self.report.by_layers).add(model.name)
            yield found
