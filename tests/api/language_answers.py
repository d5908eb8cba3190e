"""Made-up answers about language models and their users."""

from dataclasses import fields, replace
from typing import Any

from dlbricks_tui.api.language_answers import (
    Bounds,
    DelayOfPrompt,
    LanguageAnswer,
    LanguageChange,
    LanguageIntervals,
    LanguageWhatIf,
    PartTime,
    SpeedAtContext,
)
from dlbricks_tui.api.loads import TokenLoadAnswer, answered
from dlbricks_tui.language.architecture import LanguagePhase, WeightPrecision
from dlbricks_tui.language.composing import MemoryNeed, StepTime
from dlbricks_tui.language.opening import NamedModel
from dlbricks_tui.language.orders import DrivenLoad, LanguageQuestion, MeasuredEngine
from dlbricks_tui.runtime.runtime import Runtime, Settings
from dlbricks_tui.scenarios.tokens import StepLatencies, TokenQueue, TokenScenario, TokenServing
from dlbricks_tui.store.change import Verdict
from tests.language.test_decoder import library as decoder_library
from tests.store.samples import system

WHEN = "2026-11-28T20:46:00+00:00"
ENGINE = MeasuredEngine(
    engine="onnxruntime-genai-0.11.2",
    prefill_ms=3990.0,
    decode_tokens_per_second=8.12,
    when="2026-11-28T20:40:00+00:00",
)


def answer(rate: float = 7.1, threads: int = 2, **changes: Any) -> LanguageAnswer:
    """Return a measured answer of so many tokens per second, with changes."""
    scale = 7.1 / rate

    def around(value: float, share: float = 0.05) -> Bounds:
        return value * (1 - share), value * (1 + share)

    prefill_ms, step_ms = 3910.0 * scale, 1000.0 / rate
    total_ms = prefill_ms + 128 * step_ms
    memory = MemoryNeed(weights=4_660_000_000, cache=84_000_000, buffers=356_000_000)
    found = LanguageAnswer(
        model="llama-3.1-8b",
        title="Llama 3.1 8B",
        path="",
        parameters=8_030_261_248,
        active_parameters=8_030_261_248,
        system="xeon-2c-0f2d6a1b",
        runtime=f"onnxruntime-1.23.2 python-3.11 threads-{threads}",
        precision="int4",
        cache="f32",
        threads=threads,
        prompt_tokens=512,
        generated_tokens=128,
        prefill_ms=prefill_ms,
        first_token_ms=prefill_ms,
        prefill_tokens_per_second=512_000 / prefill_ms,
        decode_tokens_per_second=rate,
        total_ms=total_ms,
        intervals=LanguageIntervals(
            prefill_ms=around(prefill_ms),
            first_token_ms=around(prefill_ms),
            prefill_tokens_per_second=around(512_000 / prefill_ms),
            decode_tokens_per_second=around(rate, 0.08),
            total_ms=around(total_ms),
        ),
        memory_bytes=memory.total,
        memory=memory,
        host_memory_bytes=23_000_000_000,
        fits=True,
        coverage=1.0,
        is_measured=changes.get("coverage", 1.0) >= 1.0,
        measured_when=WHEN,
        bound_tokens_per_second=1.36 * rate,
        head="the last token",
        parts=(
            PartTime("table", 0.4 * scale, 0.01 * scale),
            PartTime("products", 3200.0 * scale, 121.0 * scale),
            PartTime("attention", 610.0 * scale, 9.8 * scale),
            PartTime("norms", 60.0 * scale, 1.1 * scale),
            PartTime("head", 12.0 * scale, 7.6 * scale),
            PartTime("other", 27.6 * scale, 1.3 * scale),
        ),
        contexts=tuple(
            SpeedAtContext(at, value * rate, value * rate * 0.92, value * rate * 1.08, predicted)
            for at, value, predicted in ((128, 1.03, False), (512, 1.0, False), (1024, 0.96, False), (4096, 0.78, True))
        ),
        prompts=tuple(
            DelayOfPrompt(at, value * scale, value * scale * 0.95, value * scale * 1.05, predicted)
            for at, value, predicted in (
                (16, 263.0, True),
                (128, 1090.0, False),
                (512, 4050.0, False),
                (1024, 8400.0, True),
            )
        ),
        measured=None,
    )
    return replace(found, **changes)


def predicted(rate: float = 7.1, threads: int = 2, **changes: Any) -> LanguageAnswer:
    """Return an answer that is all predicted, with wide intervals."""
    measured = answer(rate, threads)
    contexts = tuple(replace(it, low=it.low * 0.8, high=it.high * 1.2, predicted=True) for it in measured.contexts)
    prompts = tuple(
        replace(it, low_ms=it.low_ms * 0.8, high_ms=it.high_ms * 1.2, predicted=True) for it in measured.prompts
    )
    wide = {it.name: getattr(measured.intervals, it.name) for it in fields(LanguageIntervals)}
    intervals = LanguageIntervals(**{name: (low * 0.8, high * 1.2) for name, (low, high) in wide.items()})
    changes = {"intervals": intervals, **changes}
    return replace(
        measured, coverage=0.0, is_measured=False, measured_when=None, contexts=contexts, prompts=prompts, **changes
    )


def too_large(**changes: Any) -> LanguageAnswer:
    """Return an answer about a model that does not fit."""
    memory = MemoryNeed(weights=47_000_000_000, cache=210_000_000, buffers=700_000_000)
    about: dict[str, Any] = {"model": "llama-3.3-70b", "title": "Llama 3.3 70B", "parameters": 70_553_706_496}
    return predicted(
        0.43,
        **about,
        active_parameters=70_553_706_496,
        memory=memory,
        memory_bytes=memory.total,
        fits=False,
        **changes,
    )


def variants() -> tuple[LanguageAnswer, ...]:
    """Return answers about a model in two precisions with one thread and two, of which two are best for prefill."""
    f32 = MemoryNeed(weights=32_100_000_000, cache=84_000_000, buffers=356_000_000)
    slow = answer(6.9, threads=1, prefill_ms=7700.0, prefill_tokens_per_second=66.5, first_token_ms=7700.0)
    one = answer(7.4, threads=1, prefill_ms=7600.0, prefill_tokens_per_second=67.4, first_token_ms=7600.0)
    large: dict[str, Any] = {"precision": "f32", "memory": f32, "memory_bytes": f32.total, "fits": False}
    return (
        replace(one, total_ms=7600.0 + 128_000 / 7.4),
        answer(),
        replace(slow, precision="int8"),
        predicted(1.1, **large),
    )


def changes(
    total: float, prefill: float, decode: float, verdict: Verdict = Verdict.UNKNOWN, reason: str = ""
) -> tuple[LanguageChange, ...]:
    """Return the changes to an execution with these ratios, within 4 % more or less."""
    ratios = zip(LanguagePhase, (total, prefill, decode), strict=True)
    return tuple(
        LanguageChange(of=of, ratio=ratio, interval=(ratio * 0.96, ratio * 1.04), verdict=verdict, reason=reason)
        for of, ratio in ratios
    )


def compared(best: LanguageAnswer, *others: LanguageAnswer) -> tuple[LanguageAnswer, ...]:
    """Return executions with made-up changes from the first one."""

    def from_best(it: LanguageAnswer) -> tuple[LanguageChange, ...]:
        ratios = it.total_ms / best.total_ms, it.prefill_ms / best.prefill_ms
        decode = best.decode_tokens_per_second / it.decode_tokens_per_second
        told = (Verdict.UNKNOWN, "it is predicted") if it.is_predicted else (Verdict.SLOWER, "")
        return changes(*ratios, decode, *told)

    return (best, *(replace(it, changes=from_best(it)) for it in others))


def what_ifs() -> tuple[LanguageWhatIf, ...]:
    """Return a change that was proved, one that was not, and one whose proof refutes the prediction."""
    predicted = "it is predicted"
    return (
        LanguageWhatIf(
            id="weights-int4",
            how="--precision int4",
            predicted=changes(0.6, 0.8, 0.55, reason=predicted),
            measured=changes(0.62, 0.83, 0.56, Verdict.FASTER),
            end_to_end_prefill=0.85,
            end_to_end_decode=0.58,
        ),
        LanguageWhatIf(
            id="head-last",
            how="the option prune_lm_head of onnxruntime-genai's builder",
            predicted=changes(0.9, 0.8, 1.0, reason=predicted),
            measured=(),
        ),
        LanguageWhatIf(
            id="threads-1-2",
            how="an engine that takes one number of threads for each phase",
            predicted=changes(0.95, 0.7, 1.0, reason=predicted),
            measured=changes(1.3, 1.1, 1.0, reason="it may be chance, as p is not below 0.05"),
        ),
    )


def library() -> tuple[LanguageAnswer, ...]:
    """Return answers about several models, of which one was measured."""
    rows = (
        ("mixtral-8x7b", "Mixtral 8x7B", 46_702_792_704, 12_879_925_248, 2.6, 26.4e9),
        ("smollm2-135m", "SmolLM2 135M", 134_515_008, 134_515_008, 151.0, 0.13e9),
        ("qwen3-30b-a3b", "Qwen3 30B A3B", 30_532_122_624, 3_353_548_800, 11.3, 18.1e9),
        ("llama-3.2-1b", "Llama 3.2 1B", 1_235_814_400, 1_235_814_400, 38.2, 1.05e9),
        ("gpt-oss-120b", "gpt-oss 120B", 116_829_156_672, 5_132_849_472, 7.9, 66.0e9),
    )
    small = [
        predicted(
            rate,
            model=name,
            title=title,
            parameters=parameters,
            active_parameters=active,
            memory=MemoryNeed(int(size * 0.97), int(size * 0.01), int(size * 0.02)),
            memory_bytes=int(size),
            fits=size < 23e9,
        )
        for name, title, parameters, active, rate, size in rows
    ]
    return (*small, answer(), too_large())


def token_load_answer(
    users: tuple[int, ...] = (2, 4),
    *,
    is_driven: bool = True,
    coverage: float = 1.0,
    host_memory_bytes: int = 16_000_000_000,
    **asked: Any,
) -> TokenLoadAnswer:
    """Return an answer of a model that reads a prompt in half a second, and makes a token in 20 ms."""
    model = NamedModel("smollm2-135m", decoder_library("smollm2-135m"), title="SmolLM2 135M")
    runtime = Runtime("onnxruntime", "python", "onnxruntime", "1.32.0", "3.11", Settings(2))
    given = {"prompt": 512, "generate": 128, "first_token_ms": 4000.0, "per_token_ms": 60.0}
    scenario = TokenScenario(**{**given, "percentile": 90.0, "think_s": 0.0, "batch": 4, **asked})
    question = LanguageQuestion(model, runtime, WeightPrecision.INT4, scenario.prompt, scenario.generate, (1, 2, 4))
    engine = TokenQueue(scenario, StepLatencies(520.0, {1: 21.0, 2: 26.0, 4: 33.0}))

    def driven(serving: TokenServing, count: int) -> DrivenLoad | None:
        if serving is TokenServing.CONTINUOUS or not is_driven:
            return None
        return DrivenLoad(engine="onnxruntime-genai 0.18.0", load=engine.load(serving, count), when=WHEN)

    def step(ms: float) -> StepTime:
        return StepTime(ms, 0.1 * ms, {}, coverage, WHEN)

    steps, host = {1: step(20.0), 2: step(25.0), 4: step(32.0)}, system("quiet-host", memory_bytes=host_memory_bytes)
    return answered(question, scenario, step(500.0), steps, users, driven, host)
