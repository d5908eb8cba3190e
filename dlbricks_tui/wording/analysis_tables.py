"""The tables of an analysis of many models in plain characters: bounds, gains by kind, and gaps in parts."""

import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from dlbricks_tui.analysis.tables import ModelRow, by_execution, known, mean_gain, mean_ratio, middle
from dlbricks_tui.analysis.what_if import WhatIfKind
from dlbricks_tui.estimate.compositions import milliseconds as from_picoseconds
from dlbricks_tui.printable import printable
from dlbricks_tui.wording.analysis import way_line
from dlbricks_tui.wording.numbers import (
    PARTLY,
    PREDICTED,
    PREDICTED_LEGEND,
    counted,
    milliseconds,
    model_label,
    sign_of,
)
from dlbricks_tui.wording.tables import names_and_numbers, or_dash

_LEAST_NAME = 14
_LONGEST_NAME = 60
_BOUND = "<"


@dataclass(frozen=True, slots=True)
class _Figures:
    """A column of numbers: its title, the values of the models, their texts, and their mean."""

    title: str
    value: Callable[[ModelRow], float | None]
    text: Callable[[ModelRow], str]
    mean: Callable[[Iterable[float | None]], str] = lambda _: ""

    def cells(self, models: Sequence[ModelRow]) -> list[str]:
        """Return the title, a cell for each model, the mean, and the number of models without a value."""
        values = [self.value(it) for it in models]
        lacking = len(values) - len(known(values))
        return [self.title, *map(self.text, models), self.mean(values), str(lacking)]


def table_lines(models: Sequence[ModelRow], width: int) -> list[str]:
    """Return the three tables of each execution, with a row for each model, and what the signs in them mean."""
    lines: list[str] = []
    for alike in by_execution(models):
        lines += [f"{way_line(alike[0].way, alike[0].variant)}: {counted(len(alike), 'model')}", ""]
        lines += [*_bounds(alike, width), ""]
        lines += [*_gains(alike, width), ""]
        if any(it.gap is not None for it in alike):
            lines += [*_gaps(alike, width), ""]
    return [*lines, *(line for note in _notes(models) for line in _wrapped(note, width))]


def _bounds(models: Sequence[ModelRow], width: int) -> list[str]:
    columns = [
        _Figures("MEASURED", lambda it: it.measured_ms, _latency),
        _Figures("BEST", lambda it: it.best_ms, lambda it: _signed(it, it.best_ms)),
        _Figures("ROOFLINE", lambda it: it.roofline_ms, lambda it: or_dash(milliseconds, it.roofline_ms)),
        _ratio("x BEST", lambda it: it.over_best),
        _ratio("x PARALLEL", lambda it: it.over_parallel),
        _ratio("x ROOFLINE", lambda it: it.over_roofline),
    ]
    lines = _table("BOUNDS in ms", "geometric mean", columns, models, width)
    incomplete = [printable(it.name) for it in models if it.best_ms is None]
    if incomplete:
        lines += _wrapped(f"no best, as results of layers are missing: {', '.join(incomplete)}", width)
    return lines


def _gains(models: Sequence[ModelRow], width: int) -> list[str]:
    kinds = [kind for kind in WhatIfKind if any(kind in it.gains for it in models)]
    lacking = [kind.value for kind in WhatIfKind if kind not in kinds]
    lines = _table("GAINS in %", "geometric mean", [_gain(kind) for kind in kinds], models, width) if kinds else []
    if lacking:
        told = f"no results of other executions for: {', '.join(lacking)} (`dlbricks analyze --measure`)"
        lines += _wrapped(told, width)
    return lines


def _gaps(models: Sequence[ModelRow], width: int) -> list[str]:
    columns = [
        _Figures("GAP ms", _gap_ms, lambda it: or_dash(milliseconds, _gap_ms(it))),
        _share("BEST", lambda it: None if it.shares is None else it.shares.best),
        _share("SLOWER", lambda it: None if it.shares is None else it.shares.slower_layers),
        _share("CONVERSIONS", lambda it: None if it.shares is None else it.shares.conversions),
        _share("CALLS", lambda it: None if it.shares is None else it.shares.calls),
        _share("UNEXPLAINED", _unexplained),
    ]
    return _table("GAP in % of the latency", "median", columns, models, width)


def _notes(models: Sequence[ModelRow]) -> list[str]:
    """Return what columns and signs mean, of those that the tables have."""
    gains = [gain for it in models for gain in it.gains.values()]
    notes = {
        "x: the latency over the best, over the best in parallel, and over the roofline": True,
        "( ) estimate: the model was not timed end to end": any(
            it.measured_ms is None and it.estimate_ms is not None for it in models
        ),
        PREDICTED_LEGEND: any(it.predicted for it in models),
        f"{PARTLY} partial: the estimate leaves layers out": any(it.partial for it in models),
        "gains: the share of the latency that the best change of a kind saves, predicted/proved": bool(gains),
        f"{_BOUND} a bound that nobody can run": any(gain.is_bound for gain in gains),
        "best + slower layers + conversions + calls + unexplained are the whole latency": any(
            it.gap is not None for it in models
        ),
    }
    return [note for note, applies in notes.items() if applies]


def _table(title: str, mean: str, columns: Sequence[_Figures], models: Sequence[ModelRow], width: int) -> list[str]:
    """Return a row for each model, the mean over them, and the number of models without a value."""
    figures = [it.cells(models) for it in columns]
    taken = sum(max(map(len, cells)) + 2 for cells in figures)
    room = min(_LONGEST_NAME, max(_LEAST_NAME, width - taken))
    names = [title, *(model_label(it.name, it.table1_id, room) for it in models), mean, "without value"]
    lines = names_and_numbers(list(zip([name[:room] for name in names], *figures, strict=True)))
    return [line.rstrip() for line in lines]


def _ratio(title: str, value: Callable[[ModelRow], float | None]) -> _Figures:
    return _Figures(title, value, lambda it: or_dash(_two_digits, value(it)), _mean_ratio)


def _mean_ratio(values: Iterable[float | None]) -> str:
    return or_dash(_two_digits, mean_ratio(values))


def _gain(kind: WhatIfKind) -> _Figures:
    def text(it: ModelRow) -> str:
        found = it.gains.get(kind)
        if found is None:
            return "-"
        proved = "" if found.proved is None else f"/{_points(found.proved)}"
        return f"{_BOUND if found.is_bound else ''}{_points(found.predicted)}{proved}"

    def mean(values: Iterable[float | None]) -> str:
        return or_dash(_points, mean_gain(values))

    return _Figures(kind.value.upper(), lambda it: it.gain(kind), text, mean)


def _share(title: str, value: Callable[[ModelRow], float | None]) -> _Figures:
    return _Figures(title, value, lambda it: or_dash(_percent, value(it)), lambda held: or_dash(_percent, middle(held)))


def _gap_ms(it: ModelRow) -> float | None:
    return None if it.gap is None else from_picoseconds(it.gap.total_ps)


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


def _signed(it: ModelRow, latency_ms: float | None) -> str:
    return or_dash(lambda ms: f"{PREDICTED if it.predicted else ''}{milliseconds(ms)}", latency_ms)


def _two_digits(value: float) -> str:
    return f"{value:.2f}"


def _points(share: float) -> str:
    rounded = round(100 * share)
    return f"{rounded:+}" if rounded else "0"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_long_words=False)
