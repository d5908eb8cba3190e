"""The results of an evaluation as tables of plain characters, with marks, and the comparison with earlier results."""

from collections.abc import Iterator, Mapping, Sequence

from dlbricks_tui.answers.evaluations.results import ComparedResult, EvaluatedLoad, EvaluatedResult, EvaluationResult
from dlbricks_tui.evaluations.evaluation import SHORT_HASH
from dlbricks_tui.printable import printable
from dlbricks_tui.runtime.traits import TRAITS
from dlbricks_tui.runtime.variant import Kernels, Variant
from dlbricks_tui.wording.numbers import milliseconds, percent, signed_percent
from dlbricks_tui.wording.scenarios import kind_in_words, percentile_name
from dlbricks_tui.wording.tables import Column, justified, or_dash

# The columns that a narrow terminal does without, the least important first.
_SPARED = ("WHEN", "SAMPLES", "OF", "95 % INTERVAL", "VALID")


def results_view(result: EvaluationResult, width: int) -> Iterator[str]:
    """Yield the name of an evaluation, its results and scenarios, and the requirements that they did not meet."""
    name = result.evaluation
    yield printable(f"evaluation {name.name} ({name.file}, sha256 {name.sha256[:SHORT_HASH]})")
    marks = _marks(result)
    if result.results:
        yield ""
        yield from _table(
            ("MODEL", "RUNTIME", "VARIANT", "WHEN"),
            ("END TO END", "95 % INTERVAL", "ESTIMATE", "SAMPLES"),
            [_result_row(it, marks) for it in result.results],
            width,
        )
        yield "latencies in milliseconds"
    if result.scenarios:
        yield ""
        yield from _table(
            ("MODEL", "RUNTIME", "SCENARIO", "WHEN"),
            ("PERCENTILE", "LATENCY", "PER SECOND", "VALID"),
            [_load_row(it, marks) for it in result.scenarios],
            width,
        )
    if marks:
        yield ""
        yield from (printable(f"[{number}] {text}") for text, number in marks.items())


def comparison_view(result: EvaluationResult, by: float, width: int) -> Iterator[str]:
    """Yield today's latencies beside the earlier ones, and the differences of each."""
    compared = result.comparison or ()
    where = "in the file" if result.compared_with == "file" else "of the store"
    yield f"compared with the earlier results {where}; a change of up to {percent(by, 1)} counts as none"
    yield ""
    yield from _table(
        ("MODEL", "RUNTIME", "VARIANT", "OF"),
        ("WAS", "IS", "CHANGE", "95 % INTERVAL", "VERDICT"),
        [_compared_row(it) for it in compared],
        width,
    )
    yield from _grouped("unknown", [(it.reason,) if it.reason else () for it in compared], compared)
    yield from _grouped("different", [tuple([each.in_words for each in it.differences]) for it in compared], compared)
    if any(it.per_item for it in compared):
        yield ""
        yield "latencies of results with another batch size are those of one item"


def _grouped(title: str, words: Sequence[tuple[str, ...]], compared: Sequence[ComparedResult]) -> Iterator[str]:
    """Yield the words about each result below the names of all results that have the same words."""
    named: dict[tuple[str, ...], list[str]] = {}
    for it, told in zip(compared, words, strict=True):
        if told:
            named.setdefault(told, []).append(f"{it.model}, {_title(it.framework)}, {_variant(it)}")
    for told, results in named.items():
        yield ""
        yield f"{title} for all:" if len(results) == len(compared) else printable(f"{title} for {'; '.join(results)}:")
        yield from (printable(f"  {each}") for each in told)


def _marks(result: EvaluationResult) -> Mapping[str, int]:
    """Return the number of each requirement that some result does not meet."""
    of_each = [*(it.unmet for it in result.results), *(it.unmet for it in result.scenarios)]
    unmet = (text for each in of_each for text in each)
    return {text: number for number, text in enumerate(dict.fromkeys(unmet), start=1)}


def _marked(name: str, unmet: Sequence[str], marks: Mapping[str, int]) -> str:
    return " ".join([name, *(f"[{marks[text]}]" for text in unmet)])


def _result_row(it: EvaluatedResult, marks: Mapping[str, int]) -> list[str]:
    return [
        _marked(it.model, it.unmet, marks),
        f"{_title(it.framework)} {it.version}",
        _variant(it, Kernels(it.instructions, it.optimisation)),
        _minute(it.when),
        or_dash(milliseconds, it.measured_ms),
        _interval(it.measured_interval_ms),
        or_dash(milliseconds, it.estimate_ms),
        str(it.samples) if it.samples else "-",
    ]


def _load_row(it: EvaluatedLoad, marks: Mapping[str, int]) -> list[str]:
    bound = "" if it.bound_ms is None else f" within {it.bound_ms:g} ms"
    found = it.measured
    return [
        _marked(it.model, it.unmet, marks),
        it.runtime.split(" ")[0],
        f"{kind_in_words(it.kind)}{bound}",
        _minute(None if found is None else found.when),
        percentile_name(it.percentile),
        or_dash(milliseconds, None if found is None else found.percentile_ms),
        or_dash(milliseconds, None if found is None else found.per_second),
        "-" if found is None else "yes" if found.valid else "no",
    ]


def _compared_row(it: ComparedResult) -> list[str]:
    low, high = it.interval or (None, None)
    return [
        it.model,
        _title(it.framework),
        _variant(it),
        it.of or "-",
        or_dash(milliseconds, it.was_ms),
        or_dash(milliseconds, it.is_ms),
        or_dash(signed_percent, it.change),
        "-" if low is None or high is None else f"{signed_percent(low)} to {signed_percent(high)}",
        it.verdict.value,
    ]


def _variant(it: EvaluatedResult | ComparedResult, kernels: Kernels | None = None) -> str:
    return Variant(it.threads, it.batch, it.precision, kernels or Kernels()).in_words


def _title(framework: str) -> str:
    return TRAITS[framework].title if framework in TRAITS else framework


def _minute(when: str | None) -> str:
    return "-" if when is None else when[:16].replace("T", " ")


def _interval(bounds: tuple[float, float] | None) -> str:
    return "-" if bounds is None else f"{milliseconds(bounds[0])} to {milliseconds(bounds[1])}"


def _table(names: Sequence[str], figures: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Return a table; columns that are too many for the width are left out."""
    titles = [*names, *figures]
    cells = [titles, *([printable(cell) for cell in row] for row in rows)]
    kept = list(range(len(titles)))
    for spared in ("", *_SPARED):
        kept = [place for place in kept if titles[place] != spared]
        columns: list[Column[object]] = [
            Column(titles[place], str, holds_names=titles[place] in names) for place in kept
        ]
        lines = [line.rstrip() for line in justified(columns, [[row[place] for place in kept] for row in cells])]
        if max(map(len, lines)) <= width:
            break
    return lines
