"""Language models in llama.cpp, which tells no times of operators: the whole one from small ones, by numbers of blocks.

Small models have the table, the head and some blocks. The time of a step is linear in the number of blocks, of windowed
ones and of those with more bits, so times of small models, each with a weight, add up to that of the whole model.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from itertools import chain, product
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.language.architecture import WINDOW_SLACK, Architecture, WeightPrecision
from dlbricks_tui.language.composing import MemoryNeed, StepTime
from dlbricks_tui.language.decoder import ModelPart, Step, decoder, distinct_blocks
from dlbricks_tui.language.gguf_files import gguf_tensors, rich_blocks, size_bytes
from dlbricks_tui.language.orders import LanguageQuestion, MeasuredEngine
from dlbricks_tui.language.predicting import OTHER_HOST, BrickWork, HostRates, usual_ms, work_of
from dlbricks_tui.runtime.llama_bench import LlamaTest
from dlbricks_tui.runtime.traits import LLAMA_CPP, runtime_title
from dlbricks_tui.runtime.variant import FlashAttention, stated_flash_attention
from dlbricks_tui.store.records import EndToEnd
from dlbricks_tui.store.selections import equal
from dlbricks_tui.store.statistics import summarise

if TYPE_CHECKING:
    from dlbricks_tui.store.database import ResultsDatabase

# The id of the method under which times of small and of whole models are stored.
PROTOCOL = "llama-1"
PREDICTED_FACT = "predicted_ms"
# The largest small model has this share of the blocks, and at most so many bytes unless two blocks of each kind need
# more; the smallest has about a third of it.
_MOST_SHARE, _MOST_BYTES = 2 / 3, 3 << 29
_NOTHING = 1e-6
# One reading of the prompt by the largest small model takes at most about so long: fewer tokens stand for longer ones.
_MOST_MS, _FEWEST_TOKENS = 4000.0, 32
# Tokens that a test of decoding generates.
_MOST_TOKENS = 16
# Standard deviations of a latency as shares of it: of the method, of other models in the same engine, of other
# engines, of a host whose speed is not known, and of a length that is twice as long.
_METHOD, _LIKE, _FOREIGN, _UNKNOWN_HOST, _PER_DOUBLING = 0.015, 0.12, 0.35, 0.45, 0.04
_DEVIATIONS = 1.96
# Few rounds tell less about their spread than many.
_FEW_ROUNDS = 4
_FLOAT_BYTES = 4
# The process without a model, and each word of the vocabulary.
_PROCESS_BYTES, _BYTES_PER_WORD = 15 << 20, 40
# Caches are as long as a multiple of so many tokens; of a prompt so many are computed at once.
_CACHE_STEP, _BATCH = 256, 512

Rich = tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class SmallModels:
    """Small models by their blocks, and the weights of their times in that of the whole model and without blocks."""

    models: tuple[Rich, ...]
    whole: tuple[float, ...]
    outside: tuple[float, ...]


def _ratios(records: Sequence[EndToEnd]) -> dict[bool, tuple[float, float]]:
    """Return the median logarithm of measured to predicted, and its spread, by whether a prompt was read."""
    ratios: defaultdict[bool, list[float]] = defaultdict(list)
    for it in records:
        predicted = dict(it.noise).get(PREDICTED_FACT)
        if isinstance(predicted, int | float) and predicted > 0:
            ratios[it.name.startswith("prefill")].append(math.log(it.statistics.trimmed_mean_ms / predicted))
    return {is_prefill: (median(of), _spread(of)) for is_prefill, of in ratios.items()}


@lru_cache(maxsize=256)
def small_models(model: Architecture, precision: WeightPrecision) -> SmallModels:
    """Return the small models from which a model follows, with small weights, as noise counts by them."""
    rich = rich_blocks(model, precision)
    whole_bytes, outer_bytes = (size_bytes(gguf_tensors(model, precision, it)) for it in (rich, ()))
    fitting = int((_MOST_BYTES - outer_bytes) / ((whole_bytes - outer_bytes) / model.blocks))
    # Blocks come in the order of the model, as older versions of llama.cpp know its windows themselves.
    period = 1 + next((it for it, is_windowed in enumerate(model.windowed) if is_windowed != model.windowed[0]), 0)
    most = max(2, min(int(model.blocks * _MOST_SHARE), fitting)) // period * period
    most = min(model.blocks, max(most, 2 * period, 4 * any(rich)))
    # Two small models are enough if their blocks are mixed like those of the whole one.
    for blocks in (most, most - period):
        for least in sorted(range(period, blocks, period), key=lambda it: abs(it - most / 3)):
            for large, small in product(_mixed(blocks, rich), _mixed(least, rich)):
                weights, distance = _weights(model, (large, small), rich)
                if distance < _NOTHING:
                    return SmallModels((large, small), weights, _weights(model, (large, small), ())[0])
    found = [_mixed(most, rich)[0]]
    others = [_with_rich(it, count) for it in (period, most - 1, most + 1, 1) for count in (it // 2, it, 0)]
    weights, distance = _weights(model, found, rich)
    for other in others:
        if distance < _NOTHING:
            break
        if 0 < len(other) <= model.blocks and (not any(other) or any(rich)):
            weights, nearer = _weights(model, [*found, other], rich)
            if nearer < distance - _NOTHING or len(found) == 1:
                found.append(other)
                distance = nearer
    if distance >= _NOTHING:
        # No few blocks have all kinds.
        return SmallModels((rich,), (1.0,), (0.0,))
    weights, _ = _weights(model, found, rich)
    return SmallModels(tuple(found), weights, _weights(model, found, ())[0])


def _mixed(blocks: int, rich: Rich) -> list[Rich]:
    """Return so many blocks, of which the same share has more bits as in the whole model, rounded down and up."""
    share = blocks * sum(rich) / len(rich)
    return [_with_rich(blocks, it) for it in dict.fromkeys((math.floor(share), math.ceil(share)))]


def _with_rich(blocks: int, rich: int) -> Rich:
    return (True,) * rich + (False,) * (blocks - rich)


def _weights(model: Architecture, small: Sequence[Rich], wanted: Rich) -> tuple[tuple[float, ...], float]:
    """Return weights of small models that add up to the blocks of another one, and by how much they fail to."""
    import numpy

    rows = numpy.array([_counts(model, it) for it in small], float).T
    goal = numpy.array(_counts(model, wanted), float)
    found = numpy.linalg.lstsq(rows, goal, rcond=None)[0]
    # Not by `@`: its threads spin for tens of milliseconds afterwards.
    distance = float(numpy.abs((rows * found).sum(axis=1) - goal).max())
    return tuple(round(float(it), 9) for it in found), distance


def _counts(model: Architecture, rich: Rich) -> tuple[int, int, int, int]:
    return 1, len(rich), sum(model.windowed[: len(rich)]), sum(rich)


def with_blocks(model: Architecture, blocks: int) -> Architecture:
    """Return a model of which only the first blocks are there."""
    windowed = model.windowed[:blocks]
    return replace(model, blocks=blocks, windowed=windowed, window=model.window if any(windowed) else 0)


def model_key(model: Architecture, precision: WeightPrecision, rich: Rich, test: LlamaTest) -> str:
    """Return the key in the store of a test with a model that has these blocks."""
    described = repr((with_blocks(model, max(1, len(rich))), precision.value, rich, test))
    return sha256(described.encode()).hexdigest()[:32]


def tests_of(asked: LanguageQuestion) -> tuple[LlamaTest, ...]:
    """Return the tests that tell the latency of the prompt, and of the first and the last tokens of an answer."""
    prefill, *later = asked.steps
    tokens = min(_MOST_TOKENS, max(1, asked.generate - 1))
    depths = dict.fromkeys((later[0].past, max(later[0].past, later[-1].past - tokens + 1)))
    return (LlamaTest(prefill.tokens, 0, 0), *(LlamaTest(0, tokens, it) for it in depths))


def test_of(asked: LanguageQuestion, step: Step) -> LlamaTest:
    """Return the test that tells the latency of a step: one of the question, or another of its kind."""
    prefill, *decode = tests_of(asked)
    if step.tokens > 1 or not step.past:
        return prefill._replace(prompt=step.tokens)
    depths = dict(zip((it.past for it in asked.steps[1:]), decode, strict=False))
    return depths.get(step.past, decode[0]._replace(depth=step.past))


def _tests_in_turn(asked: LanguageQuestion) -> Iterator[tuple[LlamaTest, ...]]:
    """Yield the tests of a question, and shorter and shorter ones that may stand for them."""
    prefill, *decode = tests_of(asked)
    yield (prefill, *decode)
    while prefill.prompt > _FEWEST_TOKENS:
        prefill = prefill._replace(prompt=max(_FEWEST_TOKENS, prefill.prompt // 2))
        # The depth is read as a prompt, too.
        yield (prefill, decode[0]._replace(depth=prefill.prompt))


def measured_tests(asked: LanguageQuestion, host: LlamaHost) -> tuple[LlamaTest, ...]:
    """Return the tests to measure, or that were measured: shorter ones where a prompt would take many seconds."""
    model = with_blocks(asked.sizes, max(map(len, small_models(asked.sizes, asked.precision).models)))
    for tests in _tests_in_turn(asked):
        usual, _ = usual_time(host.rates, model, asked.precision, tests[0], cache_bits(asked))
        if host.scale(is_prefill=True) * usual <= _MOST_MS or all(host.measured(asked, it) for it in tests):
            break
    return tests


class Moved(NamedTuple):
    """The work of one kind of layer, and how often the model has it."""

    part: ModelPart
    times: int
    work: BrickWork


def works(model: Architecture, precision: WeightPrecision, step: Step, cache_bits: int) -> Iterator[Moved]:
    """Yield the work of a step: that of ONNX Runtime's layout with the bytes of GGUF."""
    found = decoder(model, precision.layout, step, LLAMA_CPP, distinct_blocks(model, fewest=True))
    whole = list(zip(found.graph.layers, found.parts, found.counts, map(work_of, found.graph.layers), strict=True))
    tensors = gguf_tensors(model, precision, rich_blocks(model, precision))
    blocks = [it for it in tensors if it.name.startswith("blk.")]
    experts = size_bytes([it for it in blocks if "_exps." in it.name])
    # A tied table is the head, too; it comes before an own one.
    head = [it.size_bytes for it in tensors if it.name in ("token_embd.weight", "output.weight")][-1]
    stored = {ModelPart.HEAD: head, ModelPart.EXPERTS: experts, ModelPart.BLOCKS: size_bytes(blocks) - experts}
    laid_out: Counter[ModelPart] = Counter()
    for layer, part, count, work in whole:
        # A step reads few of many experts.
        is_whole = (group := _group(part, work)) is not ModelPart.EXPERTS
        laid_out[group] += count * (work.weight_bytes if is_whole else sum(it.size_bytes for it in layer.weights))
    for _, part, count, work in whole:
        group = _group(part, work)
        ratio = stored[group] / max(1, laid_out[group]) if group in stored else 1.0
        weight, cache = int(work.weight_bytes * ratio), work.cache_bytes * cache_bits // 32
        yield Moved(part, count, work._replace(weight_bytes=weight, cache_bytes=cache))


def _group(part: ModelPart, work: BrickWork) -> ModelPart:
    if part in (ModelPart.TABLE, ModelPart.HEAD):
        return part
    return ModelPart.EXPERTS if work.op.endswith("MoE") else ModelPart.BLOCKS


class LikeLlama(NamedTuple):
    """Another execution of a model, which tells how far predictions are off."""

    host: LlamaHost
    asked: LanguageQuestion


class LlamaHost:
    """Knows what models take in a variant of llama.cpp on a host: measured, or predicted."""

    def __init__(
        self,
        rates: HostRates,
        records: Sequence[EndToEnd] = (),
        of_others: Sequence[EndToEnd] = (),
        like: LikeLlama | None = None,
    ) -> None:
        self.rates, self._like = rates, like
        # What other hosts have shown, in place of models of this one.
        self._elsewhere = _ratios(of_others)
        # Of each key the newest record of each run.
        self._found: defaultdict[str, dict[str, EndToEnd]] = defaultdict(dict)
        for it in sorted(records, key=lambda it: it.when):
            self._found[it.model][it.run] = it
        self._ratios = _ratios(records)

    @classmethod
    def of_host(
        cls,
        store: ResultsDatabase,
        system: str,
        runtime: str,
        rates: HostRates,
        without: LanguageQuestion | None = None,
        like: LikeLlama | None = None,
    ) -> LlamaHost:
        """Return what the store knows of a variant on this host, `without` the measurements of a question."""
        left_out: set[str] = set()
        if without is not None:
            sizes, bits = without.sizes, without.precision
            kinds = (*small_models(sizes, bits).models, rich_blocks(sizes, bits))
            tests = chain.from_iterable(_tests_in_turn(without))
            left_out = {model_key(sizes, bits, it, test) for it, test in product(kinds, tests)}
        found = [it for it in store.records(EndToEnd, equal(runtime=runtime, protocol=PROTOCOL)) if it.good]
        own = [it for it in found if it.system == system and it.model not in left_out]
        return cls(rates, own, [it for it in found if it.system != system], like)

    def measured(self, asked: LanguageQuestion, test: LlamaTest) -> StepTime | None:
        """Return what a test takes with the whole model, from its small models; None if it was not measured."""
        small = small_models(asked.sizes, asked.precision)
        found = self._of_one_run([model_key(asked.sizes, asked.precision, it, test) for it in small.models])
        if not found:
            return None
        return composed([it.samples_ms for it in found], small, max(it.when for it in found))

    def whole(self, asked: LanguageQuestion) -> MeasuredEngine | None:
        """Return what the whole model took; None if it was not timed."""
        rich = rich_blocks(asked.sizes, asked.precision)
        keys = [model_key(asked.sizes, asked.precision, rich, it) for it in tests_of(asked)]
        found = self._of_one_run(keys)
        if not found:
            return None
        prefill, *decode = found
        ms = sum(it.statistics.trimmed_mean_ms for it in decode) / len(decode)
        return MeasuredEngine(
            engine=runtime_title(asked.runtime.identity),
            prefill_ms=prefill.statistics.trimmed_mean_ms,
            decode_tokens_per_second=1000.0 / ms,
            when=decode[-1].when,
        )

    def time(self, asked: LanguageQuestion, test: LlamaTest) -> StepTime:
        """Return what a test takes with the whole model: measured, or predicted."""
        found = self.measured(asked, test)
        if found is not None:
            return found
        ms, parts = self._usual(asked, test)
        if (nearest := self._nearest(asked, test)) is not None:
            # The same model with another length.
            log_ratio, half = nearest
        elif self._like and (nearest := self._like.host._nearest(self._like.asked, test)) is not None:
            log_ratio, half = nearest[0], math.hypot(nearest[1], _DEVIATIONS * _LIKE)
        elif (like := self._ratios.get(test.prompt > 0)) is not None:
            log_ratio, spread = like
            half = _DEVIATIONS * math.hypot(_LIKE, spread)
        elif (there := self._elsewhere.get(test.prompt > 0)) is not None and self.rates.is_measured:
            log_ratio, spread = there
            half = _DEVIATIONS * math.hypot(OTHER_HOST, spread)
        else:
            log_ratio, half = 0.0, _DEVIATIONS * (_FOREIGN if self.rates.is_measured else _UNKNOWN_HOST)
        scale = least = math.exp(log_ratio)
        if nearest is None and self.rates.is_measured:
            # What was measured may have lain in a large cache, which this model may not fit into.
            least = bytes_read(asked, _step_of(test)) / self.rates.bytes_per_ms / ms
        bounded = max(scale, least)
        half_ms = (half * scale + bounded - scale) * ms
        return StepTime(bounded * ms, half_ms, {it: bounded * of for it, of in parts.items()}, 0.0, "")

    def _nearest(self, asked: LanguageQuestion, test: LlamaTest) -> tuple[float, float] | None:
        """Return the logarithm of measured to predicted of the nearest test of a kind, and its half interval."""
        tests = dict.fromkeys(chain.from_iterable(_tests_in_turn(asked)))
        own = [(it, known) for it in tests if (known := self.measured(asked, it)) is not None]
        alike = [(it, known) for it, known in own if (it.prompt > 0) == (test.prompt > 0)]
        if not alike:
            return None
        nearest, known = min(alike, key=lambda it: abs(_doublings(it[0], test)))
        log_ratio = math.log(known.ms / self._usual(asked, nearest)[0])
        deviation = _PER_DOUBLING * abs(_doublings(nearest, test))
        return log_ratio, math.hypot(known.half_ms / known.ms, _DEVIATIONS * deviation)

    def scale(self, *, is_prefill: bool) -> float:
        """Return by how much models take longer here than on a usual host with these rates."""
        return math.exp(self._ratios.get(is_prefill, (0.0, 0.0))[0])

    def _usual(self, asked: LanguageQuestion, test: LlamaTest) -> tuple[float, Mapping[ModelPart, float]]:
        return usual_time(self.rates, asked.sizes, asked.precision, test, cache_bits(asked))

    def _of_one_run(self, keys: Sequence[str]) -> list[EndToEnd]:
        """Return the records of all keys from the newest run that has them all; none without such a run."""
        runs = [self._found.get(it, {}) for it in keys]
        common = [it for it in runs[0].values() if all(it.run in of for of in runs)]
        if not common:
            return []
        run = max(common, key=lambda it: it.when).run
        return [of[run] for of in runs]


def composed(samples_ms: Sequence[Sequence[float]], small: SmallModels, when: str) -> StepTime:
    """Return a step of the whole model from samples of the small ones, of which those of a round stand together."""
    means = [summarise(it).trimmed_mean_ms for it in samples_ms]
    # Noise can make much of the weights negative; a step takes some time all the same.
    ms = max(_weighted(small.whole, means), 1e-6)
    head = min(max(_weighted(small.outside, means), 0.0), ms)
    # What makes a round slow hits all models, so rounds tell the interval.
    rounds = [_weighted(small.whole, it) for it in zip(*samples_ms, strict=False)]
    found = summarise(rounds)
    spread = (found.high_ms - found.low_ms) / 2 * (1 + _FEW_ROUNDS / len(rounds))
    parts = {ModelPart.BLOCKS: ms - head, ModelPart.HEAD: head}
    return StepTime(ms, math.hypot(spread, _DEVIATIONS * _METHOD * ms), parts, 1.0, when)


@lru_cache(maxsize=1 << 12)
def usual_time(
    rates: HostRates, model: Architecture, precision: WeightPrecision, test: LlamaTest, bits: int
) -> tuple[float, Mapping[ModelPart, float]]:
    """Return what a step of a test takes on a usual host with these rates, in milliseconds, and its parts."""
    parts: defaultdict[ModelPart, float] = defaultdict(float)
    for it in works(model, precision, _step_of(test), bits):
        parts[it.part] += it.times * usual_ms(it.work, rates)
    return sum(parts.values()), parts


def _step_of(test: LlamaTest) -> Step:
    return Step.prefill(test.prompt) if test.prompt else Step.decode(test.depth + test.generate // 2)


def cache_bits(asked: LanguageQuestion) -> int:
    cache = asked.runtime.cache
    return cache.bits if cache is not None else 16


def bytes_read(asked: LanguageQuestion, step: Step) -> int:
    """Return the bytes of weights and caches that a step reads."""
    found = works(asked.sizes, asked.precision, step, cache_bits(asked))
    return sum(it.times * it.work.bytes_read for it in found)


def memory_need(asked: LanguageQuestion) -> MemoryNeed:
    """Return the memory of the file, of the cache, and of what llama.cpp computes in.

    Tensors that it repacks are copies; the pages of the file that they come from may leave the memory.
    """
    model, tokens = asked.sizes, asked.prompt + asked.generate
    tensors = gguf_tensors(model, asked.precision, rich_blocks(model, asked.precision))
    windowed = sum(model.windowed)
    held = _padded(tokens)
    # A windowed block keeps its window and what is computed at once.
    short = min(held, _padded(model.window + _BATCH + WINDOW_SLACK)) if windowed else 0
    kept = 2 * model.kv_heads * model.head_size * ((model.blocks - windowed) * held + windowed * short)
    bits = cache_bits(asked)
    # A scale of 16 bits for each 32 numbers of 8.
    cache = kept * (bits + (bits == 8) / 2) / 8
    numbers = 4 * model.inner * max(1, model.active_experts) + 2 * model.hidden
    if stated_flash_attention(asked.runtime.identity) is FlashAttention.OFF:
        # The scores of all heads.
        numbers += model.heads * held
    running = min(_BATCH, asked.prompt) * numbers * _FLOAT_BYTES
    return MemoryNeed(
        size_bytes(tensors), int(cache), _PROCESS_BYTES + model.vocabulary * (_BYTES_PER_WORD + _FLOAT_BYTES) + running
    )


def _weighted(weights: Sequence[float], values: Sequence[float]) -> float:
    return sum(weight * it for weight, it in zip(weights, values, strict=True))


def _padded(tokens: int) -> int:
    return -(-tokens // _CACHE_STEP) * _CACHE_STEP


def _doublings(one: LlamaTest, other: LlamaTest) -> float:
    return math.log2((1 + other.prompt + other.depth) / (1 + one.prompt + one.depth))


def _spread(values: Sequence[float]) -> float:
    middle = median(values)
    return 1.4826 * median(abs(it - middle) for it in values)
