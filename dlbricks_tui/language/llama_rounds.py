"""Time small models in llama.cpp, and the whole one beside them, in rounds: a host that changes its speed hits all."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from dlbricks_tui.language.architecture import LanguageError
from dlbricks_tui.language.composing import StepTime
from dlbricks_tui.language.end_to_end import folder_for_models, require_memory, require_room
from dlbricks_tui.language.gguf_files import gguf_tensors, rich_blocks, size_bytes, write_gguf
from dlbricks_tui.language.llama_cpp import (
    PREDICTED_FACT,
    PROTOCOL,
    LlamaHost,
    Rich,
    cache_bits,
    composed,
    memory_need,
    model_key,
    small_models,
    tests_of,
    usual_time,
    with_blocks,
)
from dlbricks_tui.language.orders import LanguageQuestion
from dlbricks_tui.measure.results import runtime_record
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.errors import WorkerError
from dlbricks_tui.runtime.llama_bench import LlamaTest, run_test
from dlbricks_tui.store.records import EndToEnd, Record, System, utc_now
from dlbricks_tui.store.statistics import summarise

# Rounds: at least, at most, for about so long unless the fewest take longer, and until intervals are so narrow.
_FEWEST, _MOST, _MOST_SECONDS, _NARROW = 5, 15, 120.0, 0.04
# A test is repeated in a process until it has taken about so long.
_SECONDS_PER_TEST, _MOST_REPEATS = 0.5, 5
# Only an engine that hangs takes longer than so many times what is predicted, and so long.
_PATIENCE, _SECONDS = 50.0, 300.0
_NS_PER_MS = 1e6


@dataclass
class LlamaRounds:
    """The small models of a question in files, and perhaps the whole one, timed in rounds."""

    asked: LanguageQuestion
    tests: Sequence[LlamaTest]
    host: LlamaHost
    folder: Path
    check: Callable[[], None]
    # Samples in milliseconds per token of an answer, or of a whole prompt, one for each round.
    samples: dict[tuple[Rich, LlamaTest], list[float]] = field(default_factory=dict)
    # Why the whole model has ended early.
    failure: LanguageError | None = None
    _whole: Rich | None = None

    def write(self) -> None:
        """Write the small models."""
        for rich in small_models(self.asked.sizes, self.asked.precision).models:
            self._write(rich)

    def write_whole(self, memory_bytes: int) -> None:
        """Write the whole model, which is timed beside the small ones from now on."""
        model, precision = self.asked.sizes, self.asked.precision
        require_memory(memory_need(self.asked).total, memory_bytes)
        rich = rich_blocks(model, precision)
        self._write(rich)
        self._whole = rich

    def _write(self, rich: Rich) -> None:
        model, precision = self.asked.sizes, self.asked.precision
        require_room(self.folder, size_bytes(gguf_tensors(model, precision, rich)))
        write_gguf(self._file(rich), model, precision, rich, self.check)

    def _file(self, rich: Rich) -> Path:
        return self.folder / f"{len(rich)}-{sum(rich)}.gguf"

    def run(self, tell: Callable[[int, Mapping[LlamaTest, StepTime]], None]) -> None:
        """Time all models in rounds until their intervals are narrow; `tell` takes the round and what is known."""
        small, began, number = small_models(self.asked.sizes, self.asked.precision), time.monotonic(), 0
        is_repeated = False
        while True:
            models = [*small.models, *([self._whole] if self._whole and self._whole not in small.models else [])]
            # What runs first in each other round runs last in between.
            try:
                for rich in models if number % 2 else reversed(models):
                    self._time(rich)
            except LanguageError:
                # A process that is killed takes its round only. One is repeated, and enough of them count without it.
                self.samples = {key: of[:number] for key, of in self.samples.items()}
                if number >= _FEWEST:
                    return
                if is_repeated or not number:
                    raise
                is_repeated = True
                continue
            number += 1
            known = {
                test: composed([self.samples[it, test] for it in small.models], small, "now") for test in self.tests
            }
            tell(number, known)
            is_narrow = all(it.half_ms <= _NARROW * it.ms for it in known.values())
            if number >= _FEWEST and (is_narrow or number >= _MOST or time.monotonic() - began > _MOST_SECONDS):
                return

    def _time(self, rich: Rich) -> None:
        for test in self._tests_of(rich):
            expected_ms = self._expected_ms(rich, test) * max(1, test.generate)
            repeats = min(_MOST_REPEATS, max(1, int(_SECONDS_PER_TEST * 1000 / expected_ms)))
            depth_ms = self._expected_ms(rich, LlamaTest(max(1, test.depth), 0, 0))
            seconds = _SECONDS + _PATIENCE * ((repeats + 1) * expected_ms + depth_ms) / 1000
            try:
                samples_ns = run_test(self.asked.runtime, self._file(rich), test, repeats, seconds, self.check)
            except WorkerError as error:
                failure = LanguageError(str(error))
                if rich != self._whole or rich in small_models(self.asked.sizes, self.asked.precision).models:
                    raise failure from error
                # What is missing must not end the small models.
                self._whole, self.failure = None, failure
                self.samples = {key: of for key, of in self.samples.items() if key[0] != rich}
                self._file(rich).unlink(missing_ok=True)
                return
            ms = median(samples_ns) / _NS_PER_MS / max(1, test.generate)
            self.samples.setdefault((rich, test), []).append(ms)

    def _tests_of(self, rich: Rich) -> Sequence[LlamaTest]:
        # The whole model answers the question itself.
        return tuple(dict.fromkeys((*self.tests, *tests_of(self.asked)))) if rich == self._whole else self.tests

    def _expected_ms(self, rich: Rich, test: LlamaTest) -> float:
        asked, model = self.asked, with_blocks(self.asked.sizes, len(rich))
        usual, _ = usual_time(self.host.rates, model, asked.precision, test, cache_bits(asked))
        return self.host.scale(is_prefill=test.prompt > 0) * usual

    def records(self, system: System, run: str) -> list[Record]:
        """Return the results for the store."""
        asked, runtime = self.asked, self.asked.runtime
        found: list[Record] = [system, runtime_record(runtime, system)]
        for (rich, test), samples_ms in self.samples.items():
            model = with_blocks(asked.sizes, len(rich))
            predicted, _ = usual_time(self.host.rates, model, asked.precision, test, cache_bits(asked))
            words = f"prefill {test.prompt}" if test.prompt else f"decode {test.depth}"
            found.append(
                EndToEnd(
                    model=model_key(asked.sizes, asked.precision, rich, test),
                    name=f"{words}, {asked.model.name} with {len(rich)} blocks",
                    system=system.id,
                    runtime=runtime.identity,
                    protocol=PROTOCOL,
                    level=Level.FUSED,
                    run=run,
                    when=utc_now(),
                    # No sample is warm-up: each process has run before it counts.
                    statistics=summarise(samples_ms),
                    samples_ms=tuple(samples_ms),
                    noise=((PREDICTED_FACT, predicted),),
                )
            )
        return found


@contextmanager
def open_rounds(
    asked: LanguageQuestion, tests: Sequence[LlamaTest], host: LlamaHost, cache: Path, check: Callable[[], None]
) -> Iterator[LlamaRounds]:
    """Write the small models of a question to a folder of their own; leaving the block removes them."""
    with folder_for_models(cache) as folder:
        rounds = LlamaRounds(asked, tests, host, folder, check)
        rounds.write()
        yield rounds
