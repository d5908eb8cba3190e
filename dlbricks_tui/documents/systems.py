"""The systems with results, the facts about one of them, the best for a model or a language model, and their noise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

from dlbricks_tui.api.store_contents import KnownSystem
from dlbricks_tui.documents.parts import (
    BLANK_LINE,
    CellKind,
    Column,
    Fact,
    Heading,
    MarkedSentence,
    Part,
    Sentence,
    Table,
    bar_column,
    name_column,
)
from dlbricks_tui.estimate.comparison import Candidate, cheapest, quickest, remarks_on
from dlbricks_tui.host.fingerprint import GIBIBYTE
from dlbricks_tui.host.noise import Finding, NoiseVerdict
from dlbricks_tui.host.peaks import MEMORY
from dlbricks_tui.runtime.traits import LLAMA_CPP, runtime_title
from dlbricks_tui.runtime.variant import threads_in_words
from dlbricks_tui.wording.answers import combination_words, figure_text, rough_peaks_words
from dlbricks_tui.wording.numbers import (
    PREDICTED,
    ago,
    between,
    counted,
    delay_text,
    gibibytes,
    memory_text,
    names_of,
    or_dash,
    partly,
    percent,
    percent_of_part,
    price_per_hour,
    rate_text,
    speed,
    speeds,
)

if TYPE_CHECKING:
    from pathlib import Path

    from dlbricks_tui.api.doctor import DenormalCount, ExaminedSystem
    from dlbricks_tui.api.language_models import LanguageOnSystem
    from dlbricks_tui.store.records import RuntimeRecord

# Facts that have a name of their own.
_FACTS = {"quota_cores": "limit of cores", "governor": "frequency", "vectors": "instructions", "kernel": "Linux kernel"}


def system_columns(known: Sequence[KnownSystem]) -> tuple[Column[KnownSystem], ...]:
    """Return the columns of a list of systems; those of their peaks only if one of them has any."""

    def arithmetic(it: KnownSystem) -> str:
        return speed(max((value for each in it.peaks for _, value in each.arithmetic), default=None))

    def bandwidth(it: KnownSystem) -> str:
        memory = [value for each in it.peaks for level, value in each.bandwidth if level == MEMORY]
        return speed(max(memory, default=None))

    peaks: tuple[Column[KnownSystem], ...] = (
        Column("gflop/s", arithmetic, is_optional=True),
        Column("memory GB/s", bandwidth, is_optional=True),
    )
    return (
        name_column("system", lambda it: f"{'this host ' if it.is_host else ''}{it.system.id}"),
        Column("processor", lambda it: it.system.cpu or "-", CellKind.NAME, is_optional=True),
        Column("cores", lambda it: str(it.system.cores or "-")),
        Column("memory", lambda it: gibibytes(it.system.memory_bytes), is_optional=True, goes_last=True),
        # Most stores have no peaks.
        *(peaks if any(it.peaks for it in known) else ()),
        Column("price", lambda it: price_per_hour(it.dollars_per_hour), is_optional=True),
        Column("bricks", lambda it: str(it.bricks), style="strong"),
        Column("models", lambda it: str(it.models)),
    )


def system_parts(known: KnownSystem, runtimes: Mapping[str, RuntimeRecord]) -> Iterator[Part]:
    """Yield the facts about a system, and what was measured there in each way."""
    system = known.system
    yield Heading(system.name)
    yield Fact("id", system.id)
    yield Fact("processor", system.cpu or "unknown")
    if system.instance_type:
        yield Fact("instance", system.instance_type)
    words = {None: "unknown", True: "yes", False: "no"}
    for name, value in system.facts:
        told = words[value] if value is None or isinstance(value, bool) else str(value)
        yield Fact(_FACTS.get(name, name.replace("_", " ")), told)
    for each in known.peaks:
        yield Fact("at most", f"{speeds(each)}, with {counted(each.threads, 'thread')}")
    if not known.ways:
        yield BLANK_LINE
        yield Sentence("Nothing was measured on it yet.")
    if known.newest:
        yield Fact("measured", f"last {ago(known.newest)}")
    for way in known.ways:
        runtime = runtimes.get(way.runtime)
        yield Heading(runtime_title(runtime.name if runtime else way.runtime))
        if runtime is not None:
            yield Fact("framework", f"{runtime_title(runtime.framework)} {runtime.version}, Python {runtime.python}")
            yield Fact("threads", f"{runtime.threads}")
        yield Fact("level", way.level.value, f", protocol {way.protocol}")
        yield Fact("has", f"{counted(way.pairs, 'brick')} and {counted(way.models, 'model')} end to end")


def machine_columns(heading: str, found: Sequence[Candidate]) -> tuple[Column[Candidate], ...]:
    """Return the columns of models on systems, of which one differs: `heading` is `system` or `model`."""
    longest_ms = max((it.latency_ms for it in found), default=0.0) or 1.0
    remarks = {id(it): remark for it, remark in zip(found, remarks_on(found), strict=True)}
    return (
        name_column(heading, lambda it: it.estimate.way.system if heading == "system" else it.estimate.estimate.model),
        Column("latency", latency_text, style=lambda it: "strong" if it.complete else "warn"),
        bar_column(lambda it: it.latency_ms / longest_ms),
        Column("$/million", lambda it: "-" if it.dollars_per_million is None else f"{it.dollars_per_million:.2f}"),
        name_column("by", lambda it: combination_words(it.estimate), "muted"),
        name_column(
            "remarks", lambda it: remarks[id(it)], lambda it: "muted" if "slower" in remarks[id(it)] else "good"
        ),
    )


def comparison_parts(ranked: Mapping[str, Sequence[Candidate]]) -> Iterator[Part]:
    """Yield one model on several systems, several models on one system, or a grid of both."""
    compared = tuple(dict.fromkeys(it.estimate.way.system for found in ranked.values() for it in found))
    if len(ranked) == 1:
        ((model, found),) = ranked.items()
        yield Heading(model)
        yield Table(machine_columns("system", found), found)
    elif len(compared) == 1:
        yield Heading(compared[0])
        everything = sorted((it for found in ranked.values() for it in found), key=lambda it: it.latency_ms)
        yield Table(machine_columns("model", everything), everything)
    else:
        system_of = attrgetter("estimate.way.system")

        def on(system: str, row: tuple[str, Sequence[Candidate]]) -> str:
            return next((latency_text(it) for it in row[1] if it.estimate.way.system == system), "-")

        columns: tuple[Column[tuple[str, Sequence[Candidate]]], ...] = (
            name_column("model", lambda row: row[0]),
            *(Column(system, partial(on, system), is_named=True) for system in compared),
            name_column("quickest", lambda row: or_dash(system_of, quickest(row[1]))),
            name_column("cheapest", lambda row: or_dash(system_of, cheapest(row[1]))),
        )
        yield Table(columns, list(ranked.items()))


def latency_text(it: Candidate) -> str:
    """Return the answer of a model on a system, or the sum of the layers that were measured there."""
    predicted = it.estimate.estimate.coverage.predicted > 0
    return figure_text(it.estimate) or partly(it.latency_ms, part=True, predicted=predicted)


# The kernel settings of a recorded host were not examined.
OF_THE_LIVE_HOST = "These are findings about the host of this demonstration, not about the recorded one."
_STYLES = {NoiseVerdict.NOISY: "warn", NoiseVerdict.UNKNOWN: "muted", NoiseVerdict.QUIET: "good"}
_WIDTH = max(len(it.value) for it in NoiseVerdict)


def noisy_words(found: Sequence[Finding]) -> str:
    """Return how many sources of noise are noisy: `2 noisy`; empty if none is."""
    noisy = sum(it.verdict is NoiseVerdict.NOISY for it in found)
    return f"{noisy} noisy" if noisy else ""


def finding_parts(found: Finding) -> Iterator[Part]:
    """Yield the verdict on a source of noise, and its effect and cure unless it is quiet."""
    verdict = found.verdict.value
    state = f": {found.state}" if found.state != verdict else ""
    yield MarkedSentence(f"{verdict:<{_WIDTH}}", _STYLES[found.verdict], state, found.source)
    if found.cure:
        indent = " " * (_WIDTH + 1)
        yield Sentence(f"{indent}{found.effect}", "muted")
        yield Sentence(f"{indent}cure: {found.cure}")


def host_parts(found: ExaminedSystem) -> Iterator[Part]:
    """Yield the facts about a host, its peaks, and the sources of noise."""
    system = found.system
    facts = ", ".join(f"{name.replace('_', ' ')} {str(value).lower()}" for name, value in system.facts)
    yield Sentence(f"{system.name}, {system.memory_bytes / GIBIBYTE:.1f} GiB", "strong")
    yield Sentence(f"known as {system.id}; {facts}")
    for it in found.peaks:
        yield Sentence(f"at most {speeds(it)}, with {counted(it.threads, 'thread')}")
    yield BLANK_LINE
    for each in found.noise:
        yield from finding_parts(each)


def weights_parts(path: Path, counts: Sequence[DenormalCount]) -> Iterator[Part]:
    """Yield the denormal numbers in a file of weights."""
    affected = [it for it in counts if it.denormals]
    values = counted(sum(it.values for it in counts), "value")
    if not affected:
        yield Sentence(f"{path}: none of {values} is denormal")
        return
    columns: tuple[Column[DenormalCount], ...] = (
        name_column("array", lambda it: it.array),
        Column("values", lambda it: it.values),
        Column("denormal", lambda it: it.denormals),
        Column("share", lambda it: percent(it.share, 2)),
    )
    denormal = f"{sum(it.denormals for it in affected)} of {values} denormal"
    yield Sentence(f"{path}: {denormal}; kernels may take up to ten times as long")
    yield Table(columns, affected)


_MOST_NAMED = 5
_RESTS_ON = {"other models": "other models", "peaks": "its peaks", "description": "nothing"}


def language_systems_columns(found: Sequence[LanguageOnSystem]) -> tuple[Column[LanguageOnSystem], ...]:
    """Return the columns of one model on systems; those of prices only if one of them has any."""
    costs: tuple[Column[LanguageOnSystem], ...] = (
        Column("$/million", lambda it: _signed(it, None if it.cost is None else f"{it.cost.dollars_per_million:.2f}")),
        Column(
            "95 %",
            lambda it: "-" if it.cost is None else between(*it.cost.interval, lambda cost: f"{cost:.2f}"),
            is_optional=True,
        ),
        Column(
            "prompt $/m",
            lambda it: _signed(it, None if it.cost is None else f"{it.cost.dollars_per_million_of_prompt:.2f}"),
            is_optional=True,
        ),
    )
    return (
        name_column("system", lambda it: f"{'this host ' if it.is_host else ''}{it.system}"),
        Column("tokens/s", lambda it: _signed(it, or_dash(rate_text, it.decode_tokens_per_second)), style="strong"),
        Column(
            "95 %",
            lambda it: "-" if it.decode_interval is None else between(*it.decode_interval, rate_text),
            is_optional=True,
        ),
        Column("first token", lambda it: _signed(it, or_dash(delay_text, it.first_token_ms)), is_optional=True),
        Column(
            "memory",
            lambda it: f"{memory_text(it.memory_bytes)} of {memory_text(it.host_memory_bytes)}",
            CellKind.WORD,
            lambda it: "text" if it.fits else "bad",
            is_optional=True,
        ),
        *(costs if any(it.cost for it in found) else ()),
        name_column("by", partial(_execution, found), "muted"),
        Column("rests on", _basis_text, CellKind.WORD, "muted", is_optional=True, goes_last=True),
        Column("remarks", lambda it: ", ".join(_remarks(it)), CellKind.WORD, _style),
    )


def _execution(all_: Sequence[LanguageOnSystem], it: LanguageOnSystem) -> str:
    """Return the variant of a row, with what differs from row to row."""
    several = [it.runtime.partition(" ")[0]] * (len({each.runtime.partition(" ")[0] for each in all_}) > 1)
    cache = [f"{it.cache} cache"] * (len({each.cache for each in all_}) > 1)
    return ", ".join([*several, it.precision, *cache, threads_in_words(it.threads or None)])


def language_systems_parts(found: Sequence[LanguageOnSystem]) -> Iterator[Part]:
    """Yield each model on its systems, and how to find out what is not known."""
    for _, of_model in groupby(found, lambda it: it.model):
        rows = list(of_model)
        yield Heading(rows[0].title or rows[0].model)
        yield Sentence(
            f"{names_of(sorted({it.runtime.partition(' ')[0] for it in rows}))}; a prompt of "
            f"{counted(rows[0].prompt_tokens, 'token')}, {rows[0].generated_tokens:,} generated"
        )
        yield BLANK_LINE
        yield Table(language_systems_columns(rows), rows)
    yield from _legend(found)


def language_systems_answer(found: Sequence[LanguageOnSystem]) -> str:
    """Return the best systems for a model in a line; empty if none is known to be."""
    told = [f"{it.system} is the quickest: {_speed(it)}" for it in found if it.quickest]
    dollars = [(it.system, it.cost.dollars_per_million) for it in found if it.cheapest and it.cost]
    told += [f"{system} is the cheapest: $ {cost:.2f} for a million tokens" for system, cost in dollars]
    return "; ".join(told)


def _legend(found: Sequence[LanguageOnSystem]) -> Iterator[Part]:
    if any(it.is_predicted and it.rests_on == "bricks" for it in found):
        yield Sentence(f"{PREDICTED} predicted in part: not all bricks of the model were measured there")
    if any(it.rests_on == "other models" for it in found):
        yield Sentence(f"{PREDICTED} other models: predicted from bricks of others, which were measured there")
    if of_peaks := [it for it in found if it.rests_on == "peaks"]:
        others = sorted({name for it in of_peaks for name in it.compared_with})
        shares = f"what {names_of(others, _MOST_NAMED)} reached of theirs" if others else "what hosts usually reach"
        yield Sentence(f"{PREDICTED} its peaks: predicted from the peaks of the system and {shares}")
    if rough := [it.threads for it in found if it.has_rough_peaks and it.is_predicted]:
        yield Sentence(rough_peaks_words(rough), "warn")
    if unknown := [it for it in found if it.rests_on == "description"]:
        systems = names_of(sorted({it.system for it in unknown}), _MOST_NAMED)
        yield Sentence(
            f"nothing but its description is known of {systems}: run `{_probing(unknown)}` there for seconds, and take "
            "its results here (`dlbricks results export` and `import`)",
            "warn",
        )
    if any(it.cost for it in found):
        yield Sentence("$/million: of generated tokens, one request after another; prompt $/m: of a prompt", "muted")
    if lacking := sorted({it.system for it in found if it.cost is None and it.decode_tokens_per_second is not None}):
        yield Sentence(f"no price of {names_of(lacking, _MOST_NAMED)}: write it into prices.toml", "muted")


def _probing(unknown: Sequence[LanguageOnSystem]) -> str:
    """Return the command that measures the first of these rows, where its system is."""
    # Loaded here: lists of systems need no language models.
    from dlbricks_tui.documents.language import language_command

    # Each system has its own usual number of threads.
    is_same = len({it.threads for it in unknown}) == 1
    command = language_command(unknown[0] if is_same else replace(unknown[0], threads=0))
    # It tells no times of layers, which a probe takes.
    return command if unknown[0].runtime.startswith(LLAMA_CPP.framework) else f"{command} --probe"


def _remarks(it: LanguageOnSystem) -> Iterator[str]:
    if not it.fits:
        yield "does not fit"
    if it.quickest:
        yield "quickest"
    elif it.verdict is not None:
        yield it.verdict
    if it.cheapest:
        yield "cheapest"


def _style(it: LanguageOnSystem) -> str:
    return "good" if it.quickest or it.cheapest else "muted" if it.fits else "bad"


def _basis_text(it: LanguageOnSystem) -> str:
    if it.rests_on != "bricks":
        return _RESTS_ON[it.rests_on]
    share = f"{percent_of_part(it.coverage)} " if it.is_predicted else ""
    return f"{share}measured {ago(it.measured_when or '')}"


def _signed(it: LanguageOnSystem, told: str | None) -> str:
    return "-" if told in (None, "-") else f"{PREDICTED if it.is_predicted else ''}{told}"


def _speed(it: LanguageOnSystem) -> str:
    return _signed(it, f"{rate_text(it.decode_tokens_per_second or 0.0)} tokens/s")
