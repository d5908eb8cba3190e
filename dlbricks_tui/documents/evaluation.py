"""The results of an evaluation, with marks, and their comparison with earlier ones."""

from collections.abc import Iterator, Mapping, Sequence

from dlbricks_tui.answers.evaluating import ComparedResult, EvaluatedLoad, EvaluatedResult, EvaluationResult
from dlbricks_tui.documents.parts import BLANK_LINE, CellKind, Column, Part, Sentence, Table, name_column
from dlbricks_tui.evaluations.evaluation import SHORT_HASH
from dlbricks_tui.runtime.traits import runtime_title
from dlbricks_tui.runtime.variant import Variant, variant_in_words
from dlbricks_tui.wording.numbers import milliseconds, minute_of, or_dash, percent, signed_percent
from dlbricks_tui.wording.scenarios import kind_in_words, percentile_name


def results_parts(result: EvaluationResult) -> Iterator[Part]:
    """Yield the name of an evaluation, its results and scenarios, and the requirements that they did not meet."""
    name, marks = result.evaluation, _marks(result)
    yield Sentence(f"evaluation {name.name} ({name.file}, sha256 {name.sha256[:SHORT_HASH]})")
    if result.results:
        yield BLANK_LINE
        yield Table(_result_columns(marks), result.results)
        yield Sentence("latencies in milliseconds")
    if result.scenarios:
        yield BLANK_LINE
        yield Table(_load_columns(marks), result.scenarios)
    if marks:
        yield BLANK_LINE
        yield from (Sentence(f"[{number}] {text}") for text, number in marks.items())


def comparison_parts(result: EvaluationResult, by: float) -> Iterator[Part]:
    """Yield today's latencies beside the earlier ones, and the differences of each."""
    compared = result.comparison or ()
    where = "in the file" if result.compared_with == "file" else "of the store"
    yield Sentence(f"compared with the earlier results {where}; a change of up to {percent(by, 1)} counts as none")
    yield BLANK_LINE
    yield Table(_COMPARED_COLUMNS, compared)
    yield from _grouped("unknown", [(it.reason,) if it.reason else () for it in compared], compared)
    yield from _grouped("different", [tuple([each.in_words for each in it.differences]) for it in compared], compared)
    if any(it.per_item for it in compared):
        yield BLANK_LINE
        yield Sentence("latencies of results with another batch size are those of one item")


def _grouped(title: str, words: Sequence[tuple[str, ...]], compared: Sequence[ComparedResult]) -> Iterator[Part]:
    """Yield the words about each result below the names of all results that have the same words."""
    named: dict[tuple[str, ...], list[str]] = {}
    for it, told in zip(compared, words, strict=True):
        if told:
            named.setdefault(told, []).append(f"{it.model}, {runtime_title(it.framework)}, {_variant(it)}")
    for told, results in named.items():
        yield BLANK_LINE
        yield Sentence(f"{title} for {'all' if len(results) == len(compared) else '; '.join(results)}:")
        yield from (Sentence(f"  {each}") for each in told)


def _marks(result: EvaluationResult) -> Mapping[str, int]:
    """Return the number of each requirement that some result does not meet."""
    of_each = [*(it.unmet for it in result.results), *(it.unmet for it in result.scenarios)]
    unmet = (text for each in of_each for text in each)
    return {text: number for number, text in enumerate(dict.fromkeys(unmet), start=1)}


def _marked(it: EvaluatedResult | EvaluatedLoad, marks: Mapping[str, int]) -> str:
    return " ".join([it.model, *(f"[{marks[text]}]" for text in it.unmet)])


def _result_columns(marks: Mapping[str, int]) -> tuple[Column[EvaluatedResult], ...]:
    return (
        name_column("model", lambda it: _marked(it, marks)),
        name_column("runtime", lambda it: f"{runtime_title(it.framework)} {it.version}"),
        name_column("variant", lambda it: variant_in_words(it)),
        Column("when", lambda it: _minute(it.when), CellKind.NAME, is_optional=True),
        Column("end to end", lambda it: or_dash(milliseconds, it.measured_ms)),
        Column("95 % interval", lambda it: _interval(it.measured_interval_ms), is_optional=True),
        Column("estimate", lambda it: or_dash(milliseconds, it.estimate_ms)),
        Column("samples", lambda it: str(it.samples) if it.samples else "-", is_optional=True),
    )


def _load_columns(marks: Mapping[str, int]) -> tuple[Column[EvaluatedLoad], ...]:
    return (
        name_column("model", lambda it: _marked(it, marks)),
        name_column("runtime", lambda it: it.runtime.split(" ")[0]),
        name_column("scenario", _scenario),
        Column("when", lambda it: _minute(it.measured and it.measured.when), CellKind.NAME, is_optional=True),
        Column("percentile", lambda it: percentile_name(it.percentile)),
        Column("latency", lambda it: or_dash(milliseconds, it.measured and it.measured.percentile_ms)),
        Column("per second", lambda it: or_dash(milliseconds, it.measured and it.measured.per_second)),
        Column("valid", _validity, is_optional=True),
    )


_COMPARED_COLUMNS: tuple[Column[ComparedResult], ...] = (
    name_column("model", lambda it: it.model),
    name_column("runtime", lambda it: runtime_title(it.framework)),
    name_column("variant", lambda it: _variant(it)),
    Column("of", lambda it: it.of or "-", CellKind.NAME, is_optional=True),
    Column("was", lambda it: or_dash(milliseconds, it.was_ms)),
    Column("is", lambda it: or_dash(milliseconds, it.is_ms)),
    Column("change", lambda it: or_dash(signed_percent, it.change)),
    Column("95 % interval", lambda it: _change_interval(it.interval), is_optional=True),
    Column("verdict", lambda it: it.verdict.value),
)


def _variant(it: ComparedResult) -> str:
    return variant_in_words(Variant(threads=it.threads, batch=it.batch, precision=it.precision))


def _scenario(it: EvaluatedLoad) -> str:
    return kind_in_words(it.kind) + ("" if it.bound_ms is None else f" within {it.bound_ms:g} ms")


def _validity(it: EvaluatedLoad) -> str:
    return "-" if it.measured is None else "yes" if it.measured.valid else "no"


def _minute(when: str | None) -> str:
    return "-" if when is None else minute_of(when)


def _interval(bounds: tuple[float, float] | None) -> str:
    return "-" if bounds is None else f"{milliseconds(bounds[0])} to {milliseconds(bounds[1])}"


def _change_interval(bounds: tuple[float, float] | None) -> str:
    return "-" if bounds is None else f"{signed_percent(bounds[0])} to {signed_percent(bounds[1])}"
