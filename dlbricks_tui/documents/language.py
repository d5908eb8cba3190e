"""Language models: the answer of one, several ways to execute it, and all models of the library on this host."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple, replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from dlbricks_tui.api.language_answers import Bounds, LanguageAnswer, LanguageOptions, PartTime
from dlbricks_tui.documents.parts import (
    BLANK_LINE,
    BarFigure,
    CellKind,
    Column,
    Figures,
    Heading,
    Part,
    Plots,
    Sentence,
    Table,
    bar_column,
    error_style,
    name_column,
    word_column,
)
from dlbricks_tui.documents.pictures import Axis, Plot, Series, StraightLine
from dlbricks_tui.language.architecture import BLOCK_SIZE, WeightPrecision
from dlbricks_tui.language.decoder import ModelPart
from dlbricks_tui.printable import shell_words
from dlbricks_tui.runtime.traits import LLAMA_CPP, ONNX_RUNTIME, OPENVINO
from dlbricks_tui.runtime.variant import (
    cache_in_words,
    flash_attention_in_words,
    stated_cache,
    stated_flash_attention,
    threads_in_words,
    without_variant,
)
from dlbricks_tui.settings.language import CACHE, FLASH_ATTENTION, GENERATE, PROMPT, WEIGHTS
from dlbricks_tui.settings.setting import options_in_words
from dlbricks_tui.settings.variant import RUNTIME, THREADS
from dlbricks_tui.wording.answers import rough_peaks_words
from dlbricks_tui.wording.numbers import (
    PREDICTED,
    ago,
    between,
    counted,
    delay_text,
    memory_text,
    or_dash,
    parameters_text,
    parameters_words,
    percent,
    percent_of_part,
    rate_text,
    rate_words,
    signed_percent,
)

if TYPE_CHECKING:
    from dlbricks_tui.api.language_models import LanguageOnSystem

# A smaller share of the time is not mentioned.
_LEAST_COVERAGE = 0.005
_PLOT_LINES = 12
# The room above the highest point, and beside the first and the last one.
_ABOVE, _BESIDE = 1.1, 1.3
# Bounds and intervals that are higher would press all points to the ground.
_MOST_ABOVE = 2.0
# The least distance between two numbers on an axis, as a share of it.
_LEAST_APART = 0.25
_MEASURED = "o"
# The parts of a model in plain words.
_PART_WORDS = {
    ModelPart.PRODUCTS.value: "matrix products",
    ModelPart.NORMS.value: "normalisation",
    ModelPart.TABLE.value: "token table",
    ModelPart.HEAD.value: "output head",
    ModelPart.BLOCKS.value: "all blocks",
}
_USUAL = LanguageOptions()
_Row = TypeVar("_Row")


def language_parts(answer: LanguageAnswer, *, on_screen: bool = False) -> Iterator[Part]:
    """Yield everything about a language model in one execution; a screen has its line and its plots elsewhere."""
    if on_screen:
        yield Sentence(
            f"{answer.title or answer.model}: {parameters_words(answer.parameters, answer.active_parameters)}"
        )
        yield BLANK_LINE
    else:
        yield from headings([answer], line_of(answer))
    yield from _figures_parts(answer)
    if not on_screen and (plots := language_plots(answer)):
        yield BLANK_LINE
        yield Plots(plots, _PLOT_LINES)
        yield Sentence(" ".join(it.says for it in plots))
    yield from _shares(answer)


def headings(answers: Sequence[LanguageAnswer], told: str) -> Iterator[Part]:
    first = answers[0]
    yield Heading(first.title or first.model)
    yield Sentence(told, "strong")
    yield Sentence(_common_line(answers))
    yield Sentence(f"{parameters_words(first.parameters, first.active_parameters)}; {_request(first)}")
    yield BLANK_LINE


def line_of(answer: LanguageAnswer) -> str:
    needed = f"{memory_text(answer.memory_bytes)} of {memory_text(answer.host_memory_bytes)}"
    rate = rate_words(answer.decode_tokens_per_second)
    speed = f"{sign_of(answer)}{rate}, the first after {sign_of(answer)}{delay_text(answer.first_token_ms)}"
    return f"{speed}; {needed}" if answer.fits else f"does not fit: {needed}; with enough memory {speed}"


def execution_words(answer: LanguageAnswer) -> str:
    """Return how a model is executed, what it is asked to do, and when that was measured."""
    execution = ", ".join(words_of(AXES, answer))
    return f"{execution}; {_request(answer)}; {measured_text(answer, 'measured ')}"


def _request(answer: LanguageAnswer) -> str:
    return f"a prompt of {counted(answer.prompt_tokens, 'token')}, {answer.generated_tokens:,} generated"


class _Figure(NamedTuple):
    """A figure of an answer with its interval, a function that writes it, and what the engine reached."""

    name: str
    value: float
    bounds: Bounds
    text: Callable[[float], str] = delay_text
    reached: float | None = None

    @property
    def error(self) -> float | None:
        return None if self.reached is None else self.value / self.reached - 1.0


def _figures_parts(answer: LanguageAnswer) -> Iterator[Part]:
    """Yield the figures beside those of the whole model, if it was timed, and what they rest on."""
    within, sign, whole = answer.intervals, sign_of(answer), answer.measured
    speed, rate = answer.prefill_tokens_per_second, answer.decode_tokens_per_second
    prefill_ms, decode = (whole.prefill_ms, whole.decode_tokens_per_second) if whole else (None, None)
    prefill = prefill_ms and 1000.0 * answer.prompt_tokens / prefill_ms
    found = (
        _Figure("prefill", answer.prefill_ms, within.prefill_ms, reached=prefill_ms),
        _Figure("prefill speed", speed, within.prefill_tokens_per_second, _per_second, prefill),
        _Figure("decode", rate, within.decode_tokens_per_second, _per_second, decode),
        _Figure("in all", answer.total_ms, within.total_ms),
    )
    columns: tuple[Column[_Figure], ...] = (
        name_column("", lambda it: it.name),
        Column("estimate", lambda it: f"{sign}{it.text(it.value)}", style="strong"),
        Column("95 %", lambda it: between(*it.bounds, it.text), is_optional=True),
    )
    if whole is not None:
        columns += (Column("measured", lambda it: or_dash(it.text, it.reached)),)
        # A mere prediction is not judged by it.
        columns += (error_column(lambda it: it.error),) * (answer.coverage > 0)
    yield Table(columns, found)
    if whole is not None:
        yield Sentence(f"measured: {whole.engine} with the whole model and random weights, {ago(whole.when)}")
    yield Sentence(basis_sentence(answer), "warn" if answer.is_predicted else "text")
    bound = answer.bound_tokens_per_second
    if bound is None:
        yield Sentence("the bandwidth of the memory is not known: `dlbricks doctor --peaks` measures it")
    else:
        reached = f"decoding reaches {sign}{percent(rate / bound)} of that"
        yield Sentence(f"memory bandwidth allows {rate_words(bound)}; {reached}")
    yield from rough_peaks_parts([answer])


def basis_sentence(answer: LanguageAnswer) -> str:
    """Return what the figures rest on, how old that is, and the command that measures the rest, if one does."""
    made = f"measurements made {ago(answer.measured_when or '')}"
    if not answer.is_predicted:
        return f"the estimate rests on {made}"
    cure = f": `{language_command(answer)}` measures it"
    rest = f"is predicted{' from a shorter prompt, as the model is large' if answer.is_measured else cure}"
    if answer.measured_when is None:
        return f"{PREDICTED} all of it {rest}"
    share = percent_of_part(answer.coverage)
    return f"{PREDICTED} {share} of the time rests on {made}, the rest {rest}"


def error_column(error: Callable[[_Row], float | None]) -> Column[_Row]:
    return Column(
        "error", lambda it: or_dash(signed_percent, error(it)), style=lambda it: error_style(error(it) or 0.0)
    )


def _per_second(tokens: float) -> str:
    return f"{rate_text(tokens)} tokens/s"


def language_command(answer: LanguageAnswer | LanguageOnSystem) -> str:
    """Return the command that measures a model in the same execution."""
    framework = answer.runtime.partition("-")[0]
    given = (
        (RUNTIME, framework),
        # Of 0 threads the framework decides.
        (THREADS, answer.threads or None),
        (WEIGHTS, WeightPrecision(answer.precision)),
        (CACHE, stated_cache(answer.runtime)),
        (FLASH_ATTENTION, stated_flash_attention(answer.runtime)),
        (PROMPT, answer.prompt_tokens),
        (GENERATE, answer.generated_tokens),
    )
    words = options_in_words(given, {RUNTIME: ONNX_RUNTIME.framework, WEIGHTS: _USUAL.precisions[0]})
    return shell_words(["dlbricks", "llm", answer.path or answer.model, *words])


def _shares(answer: LanguageAnswer) -> Iterator[Part]:
    """Yield the share of each part of the model in both phases, and the parts of the memory beside the host's."""
    prefill_ms = sum(it.prefill_ms for it in answer.parts) or 1.0
    decode_ms = sum(it.decode_ms for it in answer.parts) or 1.0
    columns: tuple[Column[PartTime], ...] = (
        name_column("part", lambda it: _PART_WORDS.get(it.part, it.part)),
        Column("prefill", lambda it: delay_text(it.prefill_ms), is_optional=True),
        Column("of prefill", lambda it: percent(it.prefill_ms / prefill_ms, 1)),
        bar_column(lambda it: it.prefill_ms / prefill_ms),
        Column("per token", lambda it: delay_text(it.decode_ms), is_optional=True),
        Column("of decode", lambda it: percent(it.decode_ms / decode_ms, 1)),
        bar_column(lambda it: it.decode_ms / decode_ms),
    )
    yield Heading("Where the time goes")
    yield Table(columns, sorted(answer.parts, key=lambda it: it.decode_ms, reverse=True))
    told = "matrix products: tokens times the weights of all blocks; token table: the embedding of each token; "
    if any(it.part == ModelPart.BLOCKS.value for it in answer.parts):
        told = "all blocks: what small models take longer with more of them; the rest counts as output head; "
    head = f"output head: a score of each word of the vocabulary (logits), for {answer.head} of the prompt"
    yield Sentence(f"{told}{head}", "muted")
    yield Heading("Memory")
    need, context = answer.memory, answer.prompt_tokens + answer.generated_tokens
    sizes = (
        ("weights", need.weights, answer.precision),
        ("cache", need.cache, f"of {counted(context, 'token')}{f' in {answer.cache}' * bool(answer.cache)}"),
        ("buffers", need.buffers, ""),
        ("in all", answer.memory_bytes, ""),
        ("this host", answer.host_memory_bytes, ""),
    )
    rows = (
        BarFigure(name, memory_text(size), float(size), remarks=(told,) if told else ()) for name, size, told in sizes
    )
    yield Figures(tuple(rows))
    difference = memory_text(abs(answer.host_memory_bytes - answer.memory_bytes))
    if WeightPrecision(answer.precision) not in (WeightPrecision.F32, WeightPrecision.BF16):
        each, own = need.weights * 8 / answer.parameters, WeightPrecision(answer.precision).bits
        told = f"its own {own}, scales of each {BLOCK_SIZE} weights, and what ONNX Runtime keeps twice"
        if answer.runtime.startswith(LLAMA_CPP.framework):
            told = "with scales, and more bits of some tensors; what llama.cpp repacks may be there twice at first"
        if answer.runtime.startswith(OPENVINO.framework):
            told = "with scales and zeros; table and head have 8; OpenVINO packs a copy, and keeps the file mapped"
        yield Sentence(f"a weight takes {each:.1f} bits of memory: {told}", "muted")
    fits = f"it fits: {difference} are left" if answer.fits else f"it does not fit: {difference} are missing"
    yield Sentence(fits, "good" if answer.fits else "bad")


def runtime_name(answer: LanguageAnswer) -> str:
    return without_variant(answer.runtime)


def _cache_words(answer: LanguageAnswer) -> str:
    """Return how the engine keeps keys and values; empty where it is as usual."""
    cache = stated_cache(answer.runtime)
    return "" if cache is None else cache_in_words(cache)


def _flash_words(answer: LanguageAnswer) -> str:
    flash = stated_flash_attention(answer.runtime)
    return "" if flash is None else flash_attention_in_words(flash)


# What differs between the executions of a model, and how a line says it where it does not differ.
_Axis = tuple[Column[LanguageAnswer], Callable[[LanguageAnswer], str]]
AXES: tuple[_Axis, ...] = (
    (name_column("runtime", runtime_name), runtime_name),
    (Column("precision", lambda it: it.precision, CellKind.WORD, is_key=True), lambda it: it.precision),
    (Column("cache", lambda it: it.cache or "", CellKind.WORD, is_key=True), _cache_words),
    (Column("attention", _flash_words, CellKind.WORD, is_key=True), _flash_words),
    (Column("threads", lambda it: str(it.threads), is_key=True), lambda it: threads_in_words(it.threads or None)),
)


def differing(answers: Sequence[LanguageAnswer]) -> tuple[Column[LanguageAnswer], ...]:
    """Return a column for everything in which executions differ."""
    return tuple(column for column, _ in AXES if len({column.cell(it) for it in answers}) > 1)


def _common_line(answers: Sequence[LanguageAnswer]) -> str:
    first, columns = answers[0], differing(answers)
    common = words_of([it for it in AXES if it[0] not in columns], first)
    return ", ".join([*common, f"on {first.system}"])


def words_of(axes: Iterable[_Axis], answer: LanguageAnswer) -> Iterator[str]:
    return filter(None, (words(answer) for _, words in axes))


def figure_columns() -> tuple[Column[LanguageAnswer], ...]:
    return (
        rate_column("tokens/s", lambda it: it.decode_tokens_per_second),
        Column(
            "first token", lambda it: f"{sign_of(it)}{delay_text(it.first_token_ms)}", is_optional=True, goes_last=True
        ),
        Column("memory", lambda it: memory_text(it.memory_bytes), is_optional=True, goes_last=True),
        word_column("fits", lambda it: "yes" if it.fits else "no", lambda it: "good" if it.fits else "bad"),
        Column("measured", measured_text, CellKind.WORD, "muted", is_optional=True),
    )


def rate_column(title: str, rate: Callable[[LanguageAnswer], float]) -> Column[LanguageAnswer]:
    return Column(title, lambda it: f"{sign_of(it)}{rate_text(rate(it))}", style="strong")


def sign_of(answer: LanguageAnswer) -> str:
    return PREDICTED if answer.is_predicted else ""


def measured_text(answer: LanguageAnswer, verb: str = "") -> str:
    """Return when the figures were measured; of some their share, if the others are predicted."""
    # Small bricks occur in many models.
    if answer.measured_when is None or answer.coverage < _LEAST_COVERAGE:
        return "predicted"
    return f"{f'{percent_of_part(answer.coverage)} ' * answer.is_predicted}{verb}{ago(answer.measured_when)}"


def fastest_first(answers: Iterable[LanguageAnswer], at_least: float = 0.0) -> list[LanguageAnswer]:
    """Return those that fit, the fastest first, and the others below; or only those that fit and are fast enough."""
    found = sorted(answers, key=lambda it: (not it.fits, -it.decode_tokens_per_second))
    return [it for it in found if not at_least or (it.fits and it.decode_tokens_per_second >= at_least)]


def library_columns(answers: Sequence[LanguageAnswer]) -> tuple[Column[LanguageAnswer], ...]:
    """Return the columns of many models, with one for everything in which their executions differ."""
    parameters: Column[LanguageAnswer] = Column("params", lambda it: parameters_text(it.parameters), is_optional=True)
    return (name_column("model", lambda it: it.model), parameters, *differing(answers), *figure_columns())


def library_parts(answers: Sequence[LanguageAnswer], at_least: float = 0.0) -> Iterator[Part]:
    """Yield models that fit, the fastest first, and the others below; or only those that are fast enough."""
    shown, first = fastest_first(answers, at_least), answers[0]
    fitting = len({it.model for it in shown if it.fits})
    models, host = counted(len({it.model for it in answers}), "model"), memory_text(first.host_memory_bytes)
    fast = f" and make at least {at_least:g} tokens per second" if at_least else ""
    yield Sentence(f"{fitting} of {models} fit into the {host} of this host{fast}", "strong")
    yield Sentence(_common_line(answers))
    yield Sentence(_request(first))
    if shown:
        yield BLANK_LINE
        yield Table(library_columns(shown), shown)
        yield from legend_parts(shown)


def legend_parts(answers: Sequence[LanguageAnswer]) -> Iterator[Part]:
    if predicted := [it for it in answers if it.is_predicted]:
        command = language_command(predicted[0])
        yield Sentence(f"{PREDICTED} predicted, in part or in full: `{command}` measures the first of these")
    yield from rough_peaks_parts(answers)


def rough_peaks_parts(answers: Iterable[LanguageAnswer]) -> Iterator[Part]:
    if rough := [it.threads for it in answers if it.has_rough_peaks and it.is_predicted]:
        yield Sentence(rough_peaks_words(rough), "warn")


class _Point(NamedTuple):
    """A place on the horizontal axis, and a value with its interval."""

    at: int
    value: float
    low: float
    high: float
    predicted: bool

    @property
    def x(self) -> float:
        return float(max(1, self.at))

    def told(self, text: Callable[[float], str]) -> str:
        return f"{PREDICTED if self.predicted else ''}{text(self.value)}"


def _points(answer: LanguageAnswer) -> tuple[list[_Point], list[_Point]]:
    """Return tokens per second by context length, and milliseconds to the first token by prompt length."""
    return [_Point(*astuple(it)) for it in answer.contexts], [_Point(*astuple(it)) for it in answer.prompts]


def language_plots(answer: LanguageAnswer) -> tuple[Plot, ...]:
    """Return tokens per second by context length, and time to first token by prompt length.

    Fewer than two points of one of them make no picture.
    """
    speeds, delays = _points(answer)
    if min(len(speeds), len(delays)) < 2:
        return ()
    (first, *_, last), (least, *_, most) = speeds, delays
    rates = f"{first.told(rate_words)} after {counted(first.at, 'token')}, {last.told(rate_text)} after {last.at:,}."
    after, then = least.told(delay_text), most.told(delay_text)
    waits = f"The first token comes {after} after a prompt of {counted(least.at, 'token')}, {then} after {most.at:,}."
    bound, most_bound = answer.bound_tokens_per_second, _MOST_ABOVE * max(it.value for it in speeds)
    levels = () if bound is None or bound > most_bound else (StraightLine("bound by memory bandwidth", bound),)
    is_mixed = len({it.predicted for it in (*speeds, *delays)}) > 1
    in_s = [it._replace(value=it.value / 1000, low=it.low / 1000, high=it.high / 1000) for it in delays]
    return (
        _plot("Tokens per second by context length", rates, speeds, levels, is_log=False, is_mixed=is_mixed),
        _plot("First token (s) by prompt length", waits, in_s, (), is_log=True, is_mixed=is_mixed),
    )


def curve_parts(answer: LanguageAnswer) -> Iterator[Part]:
    """Yield tokens per second by context length, and time to first token by prompt length, with their intervals."""
    titles = (("context", "tokens/s", rate_text), ("prompt", "first token", delay_text))
    for (length, figure, text), points in zip(titles, _points(answer), strict=True):
        yield Table(_point_columns(length, figure, text), points)


def _point_columns(length: str, figure: str, text: Callable[[float], str]) -> tuple[Column[_Point], ...]:
    return (
        Column(length, lambda it: f"{it.at:,}"),
        Column(figure, lambda it: it.told(text), style="strong"),
        Column("95 %", lambda it: between(it.low, it.high, text)),
    )


def _plot(
    title: str, says: str, points: Sequence[_Point], levels: tuple[StraightLine, ...], *, is_log: bool, is_mixed: bool
) -> Plot:
    """Return points with their intervals; the legend of a plot beside another one names the marks of both."""
    of = {kind: tuple((it.x, it.value) for it in points if it.predicted is kind) for kind in (True, False)}
    series = (
        Series("", ".", "muted", tuple((it.x, it.value) for it in points), "."),
        Series("95 %", "-", "muted", tuple((it.x, end) for it in points for end in (it.low, it.high))),
        Series("predicted", PREDICTED, "warn", of[True]),
        Series("measured", _MEASURED, "accent", of[False]),
    )
    across = Axis(points[0].x / _BESIDE, points[-1].x * _BESIDE, True)
    # Numbers that do not touch: the last one, and of those before it what is far enough from the next.
    least, kept = (across.high / across.low) ** _LEAST_APART, [points[-1].x]
    for it in reversed(points):
        kept += [it.x] if kept[-1] / it.x >= least else []
    across = replace(across, ticks=tuple((x, f"{x:,.0f}") for x in reversed(kept)))
    # Ends of wide intervals stand at the upper edge.
    most = _MOST_ABOVE * max(it.value for it in points)
    highest = max([*(min(most, it.high) for it in points), *(it.value for it in levels)])
    up = Axis(min(it.low for it in points) / _ABOVE if is_log else 0.0, highest * _ABOVE, is_log)
    return Plot(title, says, across, up, tuple(it for it in series if it.points or is_mixed), levels)
