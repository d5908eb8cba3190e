"""Results: their columns, one of them with its samples and where it comes from, and the history of a brick or model."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from dlbricks_tui.documents.parts import (
    BLANK_LINE,
    BarFigure,
    CellKind,
    Column,
    Fact,
    Figures,
    Heading,
    Part,
    Sentence,
    Table,
    bar_column,
    name_column,
)
from dlbricks_tui.printable import printable
from dlbricks_tui.runtime.traits import runtime_title
from dlbricks_tui.runtime.variant import variant_in_words
from dlbricks_tui.store.change import with_doubt
from dlbricks_tui.store.columns import COLUMNS, Content, Summary
from dlbricks_tui.wording.numbers import ago, counted, ends_of, in_ms, milliseconds, minute_of, percent, signed_percent
from dlbricks_tui.wording.plain_text import bins, divided

if TYPE_CHECKING:
    from dlbricks_tui.store.records import Facts, Provenance, Result
    from dlbricks_tui.store.selections import Selection


def sample_parts(result: Result) -> Iterator[Part]:
    """Yield the statistics of the samples, and their histogram."""
    it = result.statistics
    ends = f"{milliseconds(it.low_ms, precise=True)} and {milliseconds(it.high_ms, precise=True)}"
    yield Heading(f"{counted(it.count, 'sample')}, {minute_of(result.when)} UTC")
    yield Sentence(f"measured {ago(result.when)}", "muted")
    yield Fact("trimmed mean", in_ms(it.trimmed_mean_ms), f" (95 % between {ends})")
    if result.busy:
        _, low_ms, high_ms = with_doubt(it.latency, result.busy)
        yield Fact("busy host", ends_of(low_ms, high_ms), " with the doubt about that, as in comparisons")
    yield Fact("median", in_ms(it.median_ms))
    yield Fact("minimum", in_ms(it.minimum_ms))
    yield Fact("spread", in_ms(it.spread_ms), " between the quartiles")
    yield from histogram_parts(result.samples_ms)


def histogram_parts(samples_ms: Sequence[float], bound_ms: float | None = None) -> Iterator[Part]:
    """Yield how many samples took how long; a bound stands between those below and those above it."""
    found = bins(samples_ms)
    if not found:
        return
    if bound_ms is not None:
        found = divided(found, samples_ms, bound_ms)
    rows = [BarFigure(f"{'>= ' if it.tail else ''}{in_ms(it.low_ms)}", f"{it.samples}", it.samples) for it in found]
    if bound_ms is not None:
        slower = sum(it > bound_ms for it in samples_ms)
        told = f"bound: {slower:,} of {len(samples_ms):,} above it, {percent(slower / len(samples_ms), 2)}"
        rows.insert(sum(it.high_ms <= bound_ms for it in found), BarFigure(in_ms(bound_ms), "", remarks=(told,)))
    longest = max(len(it.name) for it in rows)
    yield Figures(tuple(replace(it, name=it.name.rjust(longest)) for it in rows))


KEY_DIGITS = 12
_WHOLE = "whole model"
_MINUTES, _SECONDS = len("2026-11-21T12:34"), len("2026-11-21T12:34:56")
_AGE = len("59 min")
_NUMBER = 9


class ResultColumn(NamedTuple):
    """A column of a list of results: its title, its width and its meaning."""

    title: str
    width: int
    about: str
    # The width to which it may be cut, so that the first columns have room.
    narrow: int | None = None

    @property
    def least(self) -> int:
        return self.width if self.narrow is None else self.narrow


RESULT_COLUMNS: Mapping[str, ResultColumn] = {
    "id": ResultColumn("id", KEY_DIGITS, "the id of the result"),
    "of": ResultColumn("of", 5, "brick or model"),
    "name": ResultColumn("part", 24, "operators, window and input of a brick, or: whole model", 14),
    "kind": ResultColumn("kind", 13, "the kind of a brick"),
    "brick": ResultColumn("brick", KEY_DIGITS, "the key of the brick"),
    "context": ResultColumn("context", 14, "the context of the brick"),
    "model": ResultColumn("model key", KEY_DIGITS, "the key of the model"),
    "system": ResultColumn("system", 16, "the system"),
    "runtime": ResultColumn("runtime", 19, "the framework with its version; a result has the rest", 13),
    "level": ResultColumn("level", 7, "written or fused layers"),
    "protocol": ResultColumn("protocol", 13, "the method of measuring"),
    "batch_size": ResultColumn("batch", 6, "the batch size"),
    "threads": ResultColumn("threads", 7, "the threads of the runtime; 0: its default"),
    "precision": ResultColumn("precision", 9, "the numbers that it computed with; accuracy is not checked"),
    "dtype": ResultColumn("type", 8, "the data type"),
    "kernel_variant": ResultColumn("kernel", 10, "the kernel"),
    "trimmed_mean_ms": ResultColumn("ms", _NUMBER, "the latency in estimates: the trimmed mean"),
    "median_ms": ResultColumn("median", _NUMBER, "the median of the samples"),
    "minimum_ms": ResultColumn("minimum", _NUMBER, "the minimum of the samples"),
    "spread_ms": ResultColumn("spread", _NUMBER, "the distance between the quartiles"),
    "low_ms": ResultColumn("low", _NUMBER, "the lower end of the 95 % interval"),
    "high_ms": ResultColumn("high", _NUMBER, "the upper end of the 95 % interval"),
    "samples": ResultColumn("n", 5, "the number of samples"),
    "reference_ms": ResultColumn("reference", _NUMBER, "the latency of the reference: the speed of the host"),
    "when": ResultColumn("age", _AGE, "the age of the measurement; a result has its time"),
    "run": ResultColumn("run", 20, "the id of the run"),
    "good": ResultColumn("good", 5, "whether no flag was raised"),
    "models": ResultColumn("model", 22, "its model; of a brick, the models of the run that measured it", 14),
    "origin": ResultColumn("origin", 12, "own, unsigned, or who signed the imported file"),
}


def cell(column: str, value: Any, *, precise: bool = False) -> str:
    """Return the text of a value in a column; a precise one has all digits that matter, and seconds."""
    if column.endswith("_ms"):
        return milliseconds(value, precise=precise)
    content = COLUMNS[column]
    if content is Content.KEY:
        return str(value)[:KEY_DIGITS]
    if content is Content.TIME:
        return str(value)[: _SECONDS if precise else _MINUTES].replace("T", " ")
    if content is Content.FLAG:
        return "yes" if value else "no"
    return str(value)


def is_right(column: str) -> bool:
    """Return whether the texts of a column are aligned at the right."""
    return COLUMNS[column] is Content.NUMBER


def whole_cells(found: Selection, columns: Sequence[str]) -> Iterator[list[str]]:
    """Yield the texts of each result with whole keys; there may be many, so they are made when they are read."""
    for values in zip(*(found.values(name) for name in columns), strict=True):
        yield [
            str(value) if COLUMNS[name] is Content.KEY else cell(name, value)
            for name, value in zip(columns, values, strict=True)
        ]


def short_cell(column: str, value: Any) -> str:
    """Return the text of a value in a list, where ages and frameworks tell more at a glance."""
    if column == "when":
        return ago(str(value)).removesuffix(" ago").removeprefix("just ")
    if column == "threads" and not value:
        return "default"
    return runtime_title(str(value)) if column == "runtime" else cell(column, value)


def short_cells(found: Selection, columns: Sequence[str]) -> dict[str, list[str]]:
    """Return the texts of results in a list by column: the model, and beside it the part that was measured."""
    cells = {column: [short_cell(column, it) for it in found.values(column)] for column in columns}
    if "models" in columns:
        are_bricks = [it == "brick" for it in found.values("of")]
        if "name" in columns:
            cells["name"] = [it if brick else _WHOLE for it, brick in zip(cells["name"], are_bricks, strict=True)]
        elif any(are_bricks):
            # Without its part, a brick must not pass for its model; an imported one may have no model.
            told = zip(cells["models"], found.values("name"), are_bricks, strict=True)
            cells["models"] = [f"part of {it}" if it and brick else it or name for it, name, brick in told]
    return cells


QUESTION = "What was measured?"


def results_answer(total: int, models: int, newest: str) -> str:
    """Return how many results there are: `1,041 results of 17 models; the newest 36 h ago`."""
    of = f" of {counted(models, 'model')}" if models else ""
    return f"{counted(total, 'result')}{of}; the newest {ago(newest)}"


def title_of(it: Summary) -> str:
    """Return the name of the brick or model; its key if it has none."""
    return it.name or it.brick or it.model


def result_parts(
    it: Summary,
    result: Result | None,
    origin: Provenance | None,
    layers: Sequence[tuple[str, float]] = (),
    file: str = "",
) -> Iterator[Part]:
    """Yield everything about a result: its samples, how it was measured, and where it comes from.

    `result` is None if its samples are damaged; `layers` are those whose mean it is, with their latencies; `file` is
    the one that it was imported from.
    """
    yield Heading(title_of(it))
    if result is not None and result.flags:
        yield Sentence(f"doubtful: {', '.join(result.flags)}", "warn")
    if result is None:
        yield BLANK_LINE
        yield Sentence("Its samples can no longer be read; `dlbricks results verify` reports the damage.", "bad")
    else:
        yield from sample_parts(result)
    if layers:
        columns: tuple[Column[tuple[str, float]], ...] = (
            name_column("layer", lambda it: it[0]),
            Column("latency", lambda it: in_ms(it[1])),
        )
        yield Heading(f"Mean of {counted(len(layers), 'layer')}")
        yield Table(columns, layers)
    yield Heading("How it was measured")
    yield from _way_parts(it, result, is_mean=bool(layers))
    yield Fact("origin", f"{it.origin}, imported from {file}" if file else it.origin)
    yield from origin_parts(origin, it.model)


def origin_parts(found: Provenance | None, model: str) -> Iterator[Fact]:
    """Yield where a result comes from; `model` is the key of the model, if a whole one was timed."""
    if found is None:
        return
    yield Fact("versions", _listed(found.packages))
    yield Fact("host", _listed(found.host))
    if (digest := dict(found.models).get(model)) is not None:
        yield Fact("model file", f"SHA-256 {digest}")
    if found.evaluation:
        yield Fact("evaluation", found.evaluation)
    if found.unmet:
        yield Fact("not met", "; ".join(found.unmet))


def history_columns(found: Sequence[Summary]) -> tuple[Column[Summary], ...]:
    """Return the columns of the results of a brick or model, the newest first, with the change since the run before.

    A change in brackets may be due to sampling, because the intervals overlap.
    """
    before = {newer.id: older for newer, older in pairwise(found) if older.trimmed_mean_ms}
    longest_ms = max((it.trimmed_mean_ms for it in found), default=0.0) or 1.0

    def change(it: Summary) -> str:
        if (older := before.get(it.id)) is None:
            return ""
        told = signed_percent(it.trimmed_mean_ms / older.trimmed_mean_ms - 1.0)
        return f"({told})" if _overlap(it, older) else told

    def style(it: Summary) -> str:
        older = before.get(it.id)
        if older is None or _overlap(it, older):
            return "muted"
        return "bad" if it.trimmed_mean_ms > older.trimmed_mean_ms else "good"

    return (
        Column("when, UTC", lambda it: cell("when", it.when), CellKind.WORD, lambda it: "muted" if it.good else "warn"),
        Column("ms", lambda it: milliseconds(it.trimmed_mean_ms), style="strong"),
        Column("change", change, style=style),
        bar_column(lambda it: it.trimmed_mean_ms / longest_ms),
    )


def _way_parts(it: Summary, result: Result | None, *, is_mean: bool) -> Iterator[Fact]:
    """Yield how a result was measured, what tells it from others first; a mean is of no single layer."""
    told = {
        "system": it.system,
        "runtime": it.runtime,
        "variant": variant_in_words(it.variant),
        "level": f"{it.level.value}, protocol {it.protocol}",
        "dtype": it.dtype,
        "kernel": it.kernel_variant,
        "kind": it.kind,
        "context": it.context,
        "brick": it.brick,
        "model": it.model,
        "run": it.run,
        "id": it.id,
        "when": it.when,
        "noise": _listed(result.noise if result else ()),
        "occurrence": _listed(() if is_mean else getattr(result, "occurrence", ())),
    }
    yield from (Fact(name, value) for name, value in told.items() if value)
    flags = ", ".join(result.flags) if result else ""
    yield Fact("good", "yes" if it.good else f"no: {flags}" if flags else "no")


def _listed(facts: Facts) -> str:
    words = {True: "on", False: "off", None: "unknown"}
    told = ((name, words[it] if it is None or isinstance(it, bool) else it) for name, it in facts)
    return ", ".join(f"{name} {it}" for name, it in told)


def _overlap(one: Summary, other: Summary) -> bool:
    return one.low_ms <= other.high_ms and other.low_ms <= one.high_ms


# The columns of a list where none are named, and those that it leaves out where the terminal is narrow, in this order.
SHORT = (
    *("models", "runtime", "threads", "batch_size", "trimmed_mean_ms", "when", "name", "id"),
    *("system", "context", "level", "samples"),
)
_SHORT_GIVES_WAY = ("samples", "level", "context", "system", "name")
OF_A_BRICK = (
    *("id", "context", "system", "runtime", "protocol", "trimmed_mean_ms", "low_ms", "high_ms", "when", "good"),
)
OF_A_BRICK_GIVES_WAY = ("protocol", "good", "context", "runtime")
_BETWEEN = "  "
_NARROWEST_TEXT, _NARROWEST_NAME = 8, 18


def short_lines(results: Selection, width: int) -> Iterator[str]:
    """Yield a list with the columns that the screen of results shows first."""
    titles = {it: RESULT_COLUMNS[it].title for it in SHORT}
    return _lines(lambda kept: short_cells(results, kept), SHORT, _SHORT_GIVES_WAY, titles, width)


def list_lines(results: Selection, columns: Sequence[str], width: int, give_way: Sequence[str] = ()) -> Iterator[str]:
    """Yield a list in a width, if need be without the columns that may give way.

    A list may have 100,000 rows, so it is no table of a document, whose cells have styles.
    """

    def cells(kept: Sequence[str]) -> dict[str, list[str]]:
        return {column: [cell(column, value, precise=True) for value in results.values(column)] for column in kept}

    return _lines(cells, columns, give_way, {}, width)


def _lines(
    cells: Callable[[Sequence[str]], dict[str, list[str]]],
    columns: Sequence[str],
    give_way: Sequence[str],
    titles: Mapping[str, str],
    width: int,
) -> Iterator[str]:
    """Yield the lines of a table; where columns are too wide, the widest texts are cut, names less than others."""

    def least_width(it: str) -> int:
        # Only texts are cut. The ends of bricks' names matter, too.
        is_cut = COLUMNS[it] is Content.TEXT
        return min(widths[it], (_NARROWEST_NAME if it == "name" else _NARROWEST_TEXT) if is_cut else sys.maxsize)

    def needs(found: Iterable[int]) -> int:
        return sum(found) + len(_BETWEEN) * (len(kept) - 1)

    kept, leaving = list(dict.fromkeys(columns)), list(give_way)
    while True:
        shown = cells(kept)
        texts = {it: [titles.get(it, it).upper(), *map(printable, shown[it])] for it in kept}
        widths = {it: max(map(len, found)) for it, found in texts.items()}
        if not leaving or needs(map(least_width, kept)) <= width:
            break
        kept.remove(leaving.pop(0))
    while needs(widths.values()) > width and (long := [it for it in kept if widths[it] > least_width(it)]):
        widths[max(long, key=widths.__getitem__)] -= 1
    places = [(widths[it], is_right(it)) for it in kept]
    for row in zip(*texts.values(), strict=True):
        roomed = zip(row, places, strict=True)
        told = [it if len(it) <= room else f"{it[: room - 1]}…" for it, (room, _) in roomed]
        pairs = zip(told, places, strict=True)
        yield _BETWEEN.join(it.rjust(room) if right else it.ljust(room) for it, (room, right) in pairs).rstrip()
