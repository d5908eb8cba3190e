"""Executions of a language model beside the best one, and what changes of one would gain."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from dlbricks_tui.analysis.what_if import Gain
from dlbricks_tui.api.language_answers import LanguageAnswer, LanguageChange, LanguageWhatIf
from dlbricks_tui.documents.language import (
    AXES,
    differing,
    error_column,
    figure_columns,
    headings,
    legend_parts,
    line_of,
    rate_column,
    runtime_name,
    sign_of,
    words_of,
)
from dlbricks_tui.documents.parts import Column, Heading, Part, Sentence, Table, name_column, word_column
from dlbricks_tui.documents.ranking import difference_words
from dlbricks_tui.documents.what_ifs import interval_of, proof_sentence, style_of
from dlbricks_tui.language.architecture import LanguagePhase
from dlbricks_tui.store.change import Verdict
from dlbricks_tui.wording.answers import what_if_words
from dlbricks_tui.wording.numbers import PREDICTED, between, counted, delay_text, signed_percent

_VERDICT_STYLES = {Verdict.SLOWER: "bad", Verdict.FASTER: "good", Verdict.UNKNOWN: "muted"}
# What is best for a phase, in words, by the figure that tells.
_PHASES: dict[LanguagePhase, tuple[str, Callable[[LanguageAnswer], float]]] = {
    LanguagePhase.TOTAL: ("a whole answer", lambda it: -it.total_ms),
    LanguagePhase.PREFILL: ("the prompt", lambda it: it.prefill_tokens_per_second),
    LanguagePhase.DECODE: ("decoding", lambda it: it.decode_tokens_per_second),
}


def comparison_parts(answers: Sequence[LanguageAnswer], best_for: LanguagePhase) -> Iterator[Part]:
    """Yield one model in several executions, the best first."""
    best = answers[0]
    yield from headings(answers, f"{_execution(best, answers)}: {line_of(best)}")
    yield from executions_parts(answers, best_for)
    yield from legend_parts(answers)


def _execution(answer: LanguageAnswer, among: Sequence[LanguageAnswer]) -> str:
    """Return what tells an execution from others."""
    columns = differing(among)
    return ", ".join(words_of([it for it in AXES if it[0] in columns], answer))


def executions_parts(answers: Sequence[LanguageAnswer], best_for: LanguagePhase) -> Iterator[Part]:
    """Yield the executions of one model, the best first, and those that are better for another phase."""
    decode, *others = figure_columns()
    prefill = rate_column("prefill/s", lambda it: it.prefill_tokens_per_second)
    total: Column[LanguageAnswer] = Column(
        "in all", lambda it: f"{sign_of(it)}{delay_text(it.total_ms)}", is_optional=True, goes_last=True
    )

    def change(it: LanguageAnswer) -> LanguageChange | None:
        return next((each for each in it.changes if each.of is best_for), None)

    def against(it: LanguageAnswer) -> str:
        found = change(it)
        if found is None:
            return "best" if it.is_measured else "uncertain"
        return difference_words(found.ratio, found.verdict)

    def style(it: LanguageAnswer) -> str:
        found = change(it)
        if found is None:
            return "good" if it.is_measured else "muted"
        return _VERDICT_STYLES.get(found.verdict, "text")

    def interval(it: LanguageAnswer) -> str:
        found = change(it)
        return "" if found is None else between(*found.interval, lambda it: signed_percent(it - 1.0))

    def error(it: LanguageAnswer) -> float | None:
        if it.measured is None or it.coverage <= 0:
            return None
        return it.decode_tokens_per_second / it.measured.decode_tokens_per_second - 1.0

    errors = [error_column(error)] * any(it.measured for it in answers)
    verdicts = word_column("against best", against, style), Column("95 %", interval, style="muted", is_optional=True)
    yield Table((*differing(answers), decode, *errors, prefill, total, *others, *verdicts), answers)
    best, alike = answers[0], [it for it in answers if it.fits == answers[0].fits]
    yield Sentence(f"the best for {_PHASES[best_for][0]} comes first, and the others are compared with it", "muted")
    for phase, (words, figure) in _PHASES.items():
        other = max(alike, key=figure)
        if phase is not best_for and figure(other) > figure(best):
            yield Sentence(f"best for {words}: {sign_of(other)}{_execution(other, answers)}")
    for reason in dict.fromkeys(it.reason for answer in answers if (it := change(answer)) is not None and it.reason):
        yield Sentence(f"unknown: {reason}", "muted")
    kind = runtime_name(best), best.precision, best.cache
    if told := threads_sentence([it for it in alike if (runtime_name(it), it.precision, it.cache) == kind]):
        yield Sentence(told)


def threads_sentence(answers: Sequence[LanguageAnswer]) -> str:
    """Return the best threads for prefill and for decoding of answers that differ in nothing else; empty if equal."""
    prefilling = min(answers, key=lambda it: it.prefill_ms)
    decoding = max(answers, key=lambda it: it.decode_tokens_per_second)
    if prefilling.threads == decoding.threads:
        return ""
    both_ms = prefilling.prefill_ms + decoding.total_ms - decoding.prefill_ms
    sign = sign_of(prefilling) or sign_of(decoding)
    return (
        f"{counted(prefilling.threads, 'thread')} for prefill and {decoding.threads} for decoding are best: an engine "
        f"that allows both takes {sign}{delay_text(both_ms)} in all, against "
        f"{sign}{delay_text(min(it.total_ms for it in answers))}"
    )


def _gain(changes: Sequence[LanguageChange], phase: LanguagePhase) -> Gain | None:
    """Return the share of a phase that a change saves; None without a measurement."""
    found = next((it for it in changes if it.of is phase), None)
    return None if found is None else Gain(1.0 - found.ratio, 1.0 - found.interval[1], 1.0 - found.interval[0])


def what_if_columns(
    changes: Sequence[LanguageWhatIf], under_way: str = "", *, is_panel: bool = False
) -> tuple[Column[LanguageWhatIf], ...]:
    """Return the columns of what-ifs: of both phases the predicted gain, and what was measured.

    `under_way` is the id of the one that is being measured. A panel has the gains of whole answers before them.
    """

    def of_phase(phase: LanguagePhase) -> tuple[Column[LanguageWhatIf], ...]:
        def predicted(it: LanguageWhatIf) -> Gain:
            return _gain(it.predicted, phase) or Gain(0.0, 0.0, 0.0)

        def proved(it: LanguageWhatIf) -> str:
            change = next((each for each in it.measured if each.of is phase), None)
            if change is None:
                return "running" if it.id == under_way else "not yet"
            return f"{signed_percent(1.0 - change.ratio)} {change.verdict.value}"

        def style(it: LanguageWhatIf) -> str:
            gain = _gain(it.measured, phase)
            return "muted" if gain is None else style_of(gain.value)

        def interval(it: LanguageWhatIf) -> str:
            gain = _gain(it.measured, phase)
            return "" if gain is None else interval_of(gain)

        within: Column[LanguageWhatIf] = Column("95 %", interval, style="muted", is_optional=True)
        is_extra = is_panel and phase is not LanguagePhase.TOTAL
        gain: Column[LanguageWhatIf] = Column(
            "in all" if phase is LanguagePhase.TOTAL else phase.value,
            lambda it: f"{PREDICTED}{signed_percent(predicted(it).value)}",
            style=lambda it: style_of(predicted(it).value),
            is_optional=is_extra,
            goes_last=is_extra,
        )
        return (
            gain,
            Column("95 %", lambda it: interval_of(predicted(it)), style="muted", is_optional=True),
            Column("measured", proved, style=style, is_optional=is_extra, goes_last=is_extra),
            *[within] * any(it.measured for it in changes),
        )

    name: Column[LanguageWhatIf] = name_column("what if", lambda it: what_if_words(it.id))
    in_all = of_phase(LanguagePhase.TOTAL) if is_panel else ()
    return name, *in_all, *of_phase(LanguagePhase.PREFILL), *of_phase(LanguagePhase.DECODE)


def what_if_line(it: LanguageWhatIf) -> str:
    """Return how a change is made, and what it brings to a whole answer."""
    predicted, measured = _gain(it.predicted, LanguagePhase.TOTAL), _gain(it.measured, LanguagePhase.TOTAL)
    told = f"{it.how}; in all {PREDICTED}{signed_percent(predicted.value)}" if predicted else it.how
    if predicted is None or measured is None:
        return told
    told = f"{told}, measured {signed_percent(measured.value)}. {proof_sentence(predicted, measured)}"
    if it.end_to_end_prefill is None or it.end_to_end_decode is None:
        return told
    gains = signed_percent(1.0 - it.end_to_end_prefill), signed_percent(1.0 - it.end_to_end_decode)
    return f"{told} The engine with the whole model: prefill {gains[0]}, decode {gains[1]}."


def what_ifs_parts(answer: LanguageAnswer) -> Iterator[Part]:
    """Yield what changes of an execution would gain in each phase, and what those that were measured did."""
    changes = answer.what_ifs
    if not changes:
        return

    def how(it: LanguageWhatIf) -> Iterator[Part]:
        yield Sentence(what_if_line(it) + ("" if it.measured else f" (--prove {it.id})"))

    yield Heading("What could be faster")
    yield Table(what_if_columns(changes), changes, how)
    open_ids = [it.id for it in sorted(changes, key=lambda it: it.predicted[0].ratio) if not it.measured]
    told = f"{PREDICTED} a gain is the share of the time that a change saves, predicted from what was measured before"
    yield Sentence(f"{told}; `--prove {open_ids[0]}` measures the largest that is open" if open_ids else told, "muted")
    for reason in dict.fromkeys(it.reason for found in changes for it in found.measured if it.reason):
        yield Sentence(f"unknown: {reason}", "muted")
