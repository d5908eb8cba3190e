"""The analyses of many models as three tables: bounds, gains by kind, and gaps in parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING

from dlbricks_tui.analysis.tables import by_execution, known, mean_gain, mean_ratio, middle
from dlbricks_tui.analysis.what_if import WhatIfKind
from dlbricks_tui.documents.parts import BLANK_LINE, CellKind, Column, Part, Sentence, Table
from dlbricks_tui.estimate.compositions import milliseconds as from_picoseconds
from dlbricks_tui.wording.answers import way_line
from dlbricks_tui.wording.numbers import (
    PARTLY,
    PREDICTED,
    PREDICTED_LEGEND,
    counted,
    milliseconds,
    model_label,
    or_dash,
    sign_of,
)

if TYPE_CHECKING:
    from dlbricks_tui.analysis.tables import GapShares, ModelRow

_LONGEST_NAME = 60
_BOUND = "<"


@dataclass(frozen=True, slots=True)
class _Numbers:
    """A column of numbers: its title, the values of the models, how they are written, and their mean."""

    title: str
    value: Callable[[ModelRow], float | None]
    written: Callable[[float], str]
    mean: Callable[[Iterable[float | None]], float | None] | None = None
    # The cell of a model, if it says more than the value.
    text: Callable[[ModelRow], str] | None = None

    def cells(self, models: Sequence[ModelRow]) -> list[str]:
        """Return a cell for each model, the mean, and the number of models without a value."""
        values = [self.value(it) for it in models]
        texts = [or_dash(self.written, it) for it in values] if self.text is None else map(self.text, models)
        mean = "" if self.mean is None else or_dash(self.written, self.mean(values))
        return [*texts, mean, str(len(values) - len(known(values)))]


def analyses_parts(models: Sequence[ModelRow]) -> Iterator[Part]:
    """Yield the three tables of each execution, with a row for each model, and what the signs in them mean."""
    for alike in by_execution(models):
        yield Sentence(f"{way_line(alike[0].way, alike[0].variant)}: {counted(len(alike), 'model')}")
        yield BLANK_LINE
        yield bounds_table(alike)
        yield from map(Sentence, bounds_remarks(alike))
        yield BLANK_LINE
        if any(it.gains for it in alike):
            yield gains_table(alike)
        yield from map(Sentence, gains_remarks(alike))
        yield BLANK_LINE
        if any(it.gap is not None for it in alike):
            yield gaps_table(alike)
            yield BLANK_LINE
    yield from map(Sentence, _notes(models))


def bounds_table(models: Sequence[ModelRow]) -> Table[Sequence[str]]:
    """Return the latencies, the bounds below them, and the ratios between them."""
    columns = [
        _Numbers("MEASURED", lambda it: it.measured_ms, milliseconds, text=_latency),
        _Numbers("BEST", lambda it: it.best_ms, milliseconds, text=_best),
        _Numbers("ROOFLINE", lambda it: it.roofline_ms, milliseconds),
        _Numbers("x BEST", lambda it: it.over_best, "{:.2f}".format, mean_ratio),
        _Numbers("x PATH", lambda it: it.over_parallel, "{:.2f}".format, mean_ratio),
        _Numbers("x ROOFLINE", lambda it: it.over_roofline, "{:.2f}".format, mean_ratio),
    ]
    return _table("BOUNDS in ms", "geometric mean", columns, models)


def bounds_remarks(models: Sequence[ModelRow]) -> Iterator[str]:
    """Yield the models without a best, and how to get it."""
    incomplete = dict.fromkeys(it.name for it in models if it.best_ms is None)
    if incomplete:
        how = "`dlbricks analyze MODEL --measure` measures them"
        yield f"no best of {', '.join(incomplete)}, as results of layers are missing: {how}"


def gains_table(models: Sequence[ModelRow]) -> Table[Sequence[str]]:
    """Return the gains of each kind of changes that has results."""
    kinds = [kind for kind in WhatIfKind if any(kind in it.gains for it in models)]
    return _table("GAINS in %", "geometric mean", [_gain(kind) for kind in kinds], models)


def gains_remarks(models: Sequence[ModelRow]) -> Iterator[str]:
    """Yield the kinds of changes without results, and how to get these."""
    lacking = [kind.value for kind in WhatIfKind if all(kind not in it.gains for it in models)]
    if lacking:
        kinds = "" if len(lacking) == len(WhatIfKind) else f" --kinds {','.join(lacking)}"
        how = f"`dlbricks analyze MODEL --measure{kinds}` measures them"
        yield f"no model has results for these kinds of changes: {', '.join(lacking)}: {how}"


def gaps_table(models: Sequence[ModelRow]) -> Table[Sequence[str]]:
    """Return the gap to the best, and the parts of the latency."""
    columns = [
        _Numbers("GAP ms", lambda it: None if it.gap is None else from_picoseconds(it.gap.total_ps), milliseconds),
        _share("BEST", lambda it: it.best),
        _share("SLOWER", lambda it: it.slower_layers),
        _share("CONVERSIONS", lambda it: it.conversions),
        _Numbers("UNEXPLAINED", _unexplained, _percent, middle),
    ]
    return _table("GAP in % of the latency", "median", columns, models)


def _notes(models: Sequence[ModelRow]) -> list[str]:
    """Return what columns and signs mean, of those that the tables have."""
    gains = [gain for it in models for gain in it.gains.values()]
    notes = {
        "x: the latency over the best, over the longest path through it, and over the roofline": True,
        "( ) estimate: the model was not timed end to end": any(
            it.measured_ms is None and it.estimate_ms is not None for it in models
        ),
        PREDICTED_LEGEND: any(it.predicted for it in models),
        f"{PARTLY}before a latency: the estimate leaves layers out": any(it.partial for it in models),
        "gains: the share of the latency that the best change of a kind saves, predicted/proved": bool(gains),
        f"{_BOUND} a bound that nobody can run": any(gain.is_bound for gain in gains),
        "best + slower layers + conversions + unexplained are the whole latency": any(
            it.gap is not None for it in models
        ),
    }
    return [note for note, applies in notes.items() if applies]


def _table(title: str, mean: str, numbers: Sequence[_Numbers], models: Sequence[ModelRow]) -> Table[Sequence[str]]:
    """Return a row for each model, the mean over them, and the number of models without a value."""
    names = [*(model_label(it.name, it.table1_id, _LONGEST_NAME) for it in models), mean, "without value"]
    columns: list[Column[Sequence[str]]] = [Column(title, itemgetter(0), CellKind.NAME, is_named=True)]
    columns += [Column(it.title, itemgetter(at), is_named=True) for at, it in enumerate(numbers, 1)]
    return Table(tuple(columns), list(zip(names, *(it.cells(models) for it in numbers), strict=True)))


def _gain(kind: WhatIfKind) -> _Numbers:
    def text(it: ModelRow) -> str:
        found = it.gains.get(kind)
        if found is None:
            return "-"
        proved = "" if found.proved is None else f"/{_points(found.proved)}"
        return f"{_BOUND if found.is_bound else ''}{_points(found.predicted)}{proved}"

    return _Numbers(kind.value.upper(), lambda it: it.gain(kind), _points, mean_gain, text)


def _share(title: str, of: Callable[[GapShares], float]) -> _Numbers:
    return _Numbers(title, lambda it: None if it.shares is None else of(it.shares), _percent, middle)


def _unexplained(it: ModelRow) -> float | None:
    if it.shares is None or it.gap is None or it.gap.unexplained_ps is None:
        return None
    return it.shares.unexplained


def _latency(it: ModelRow) -> str:
    if it.measured_ms is not None:
        return milliseconds(it.measured_ms)
    if it.estimate_ms is None:
        return "-"
    return f"({sign_of(partial=it.partial, predicted=it.predicted)}{milliseconds(it.estimate_ms)})"


def _best(it: ModelRow) -> str:
    return or_dash(lambda ms: f"{PREDICTED * it.predicted}{milliseconds(ms)}", it.best_ms)


def _points(share: float) -> str:
    rounded = round(100 * share)
    return f"{rounded:+}" if rounded else "0"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"
