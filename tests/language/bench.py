"""A data folder in which language models are measured in the process of a test, and an engine that stands for one."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dlbricks_tui.api.language_measuring import measure_models
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.queue import HostQueue
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.jobs.process import JobAtWork
from dlbricks_tui.language.architecture import LanguageError, WeightPrecision
from dlbricks_tui.language.end_to_end import WholeModelEngine
from dlbricks_tui.language.opening import NamedModel
from dlbricks_tui.language.orders import LANGUAGE, LanguageOrder, LanguageQuestion
from dlbricks_tui.runs.work import Workplace
from dlbricks_tui.runtime.protocol import Generated, ServedAnswer
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.scenarios.tokens import Pauses, StepLatencies, TokenServing, served
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import Measurement
from tests.jobs.carrying import carried_out
from tests.language.test_decoder import library

# A few milliseconds in all, in a family that has every kind of layer but experts.
TINY = NamedModel(
    "tiny",
    replace(
        library("gemma-3-1b"),
        hidden=64,
        blocks=8,
        head_size=32,
        rotary_size=32,
        inner=96,
        vocabulary=320,
        window=16,
        windowed=(True, True, False, True) * 2,
    ),
    title="Tiny",
)


# Those of users who are served.
STEPS = StepLatencies(100.0, {1: 10.0, 2: 15.0})


class Bench:
    """A data folder in which language models are measured in this process."""

    def __init__(self, folder: Path) -> None:
        self.data = DataFolder(folder / "data")
        self.queue = HostQueue(folder / "host.lock")
        self.told: list[Event] = []
        self.runtime = Registry(self.data.path).find("onnxruntime").with_threads(1)

    def question(self, model: NamedModel = TINY, prompt: int = 24, generate: int = 9) -> LanguageQuestion:
        return LanguageQuestion(model, self.runtime, WeightPrecision.INT4, prompt, generate)

    def order(self, *asked: LanguageQuestion, end_to_end: bool = False, probe: bool = False) -> LanguageOrder:
        return LanguageOrder(asked or (self.question(),), end_to_end, probe)

    def measure(self, order: LanguageOrder) -> bool:
        self.told = []

        def work(job: JobAtWork[LanguageOrder]) -> None:
            measure_models(order, Workplace(self.data), job.tell, job.signals, self.queue)

        return carried_out(LANGUAGE, order, self.data, work, self.take)

    def take(self, event: Event) -> None:
        self.told.append(event)

    def measured(self) -> int:
        """Return how many results are stored."""
        with ResultsDatabase(self.data.store) as store:
            return len(store.records(Measurement))


def question(bench: Bench, **changes: Any) -> LanguageQuestion:
    return replace(bench.question(generate=101), **changes)


class FakeEngine(WholeModelEngine):
    """Takes 100 ms for a prompt, 20 ms for the first step behind it and 10 ms for each later one.

    It serves users as the simulation does, and keeps what it was asked.
    """

    def __init__(self, lives: int = 99) -> None:
        self.name, self.version = "onnxruntime-genai", "1.2"
        self.asked: list[tuple[int, int] | int | str] = []
        self.lives = lives

    def _take(self, asked: tuple[int, int] | int) -> None:
        self.asked.append(asked)
        self.lives -= 1
        if self.lives < 0:
            raise LanguageError("the engine has ended")

    def load(self) -> None:
        self.asked.append("load")

    def run(self, prompt: int, generate: int) -> Generated:
        self._take((prompt, generate))
        later = (2 * 10**7, *(10**7,) * (generate - 2)) if generate > 1 else ()
        return Generated(10**8, later, 5 * 10**8, 1 << 30)

    def serve(self, prompt: int, generate: int, batch: int, pauses: Pauses) -> Sequence[ServedAnswer]:
        self._take(batch)
        return served(STEPS, TokenServing.STATIC, batch, generate, pauses)
