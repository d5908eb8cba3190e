"""The screen of language models; answers are made up, and a small script stands for the process that measures."""

import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot

from dlbricks_tui.api import language_answers, loads
from dlbricks_tui.api import language_models as asking
from dlbricks_tui.api.language_answers import LanguageAnswer, LanguageOptions
from dlbricks_tui.api.loads import TokenLoadAnswer, TokenLoadOptions
from dlbricks_tui.api.session import WorkbenchSession
from dlbricks_tui.config.config import Config
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.queue import WorkKind
from dlbricks_tui.language.architecture import LanguageError, LanguagePhase, WeightPrecision
from dlbricks_tui.language.opening import NamedModel, library_models
from dlbricks_tui.language.orders import (
    LanguageFailed,
    LanguageMeasured,
    LanguageMessage,
    LanguageOrder,
    LanguageQuestion,
    LanguageRound,
)
from dlbricks_tui.runtime.runtime import Runtime, Settings
from dlbricks_tui.runtime.variant import CachePrecision
from dlbricks_tui.tui.dialogs.notices import ErrorScreen
from dlbricks_tui.tui.language import CompareLanguageScreen, LanguageScreen, OpenLanguageModelScreen
from dlbricks_tui.tui.workbench.screen import WorkbenchScreen
from tests.api.language_answers import answer, library, predicted, token_load_answer, what_ifs
from tests.tui.application import MEDIUM, WIDE, app_on, running, showing
from tests.tui.driving import eventually, press, screen_text, settled, shows, told
from tests.tui.processes import Process, all_seen
from tests.tui.snapshots import check_all, resize

LIBRARY = {it.model: replace(it, measured_when=None, coverage=0.0) for it in library()}
SMALL = "llama-3.2-1b"
WHEN = "2026-11-21T08:30:00+00:00"
VARIANT = "int4, 2 threads"
BEGINS = LanguageMessage(f"{SMALL}, {VARIANT}: measuring")
ROUND = LanguageRound(f"{SMALL}: round 3, about 20 s left")
DONE = LanguageMeasured(f"{SMALL}, {VARIANT}: measured in 31 s")


class Answers:
    """Made-up answers of the library, and of opened models; some are measured."""

    def __init__(self) -> None:
        self.measured = set[str]()
        # The options of all questions to the library.
        self.asked: list[LanguageOptions] = []
        self.others: Sequence[NamedModel] = ()
        self.refusal = ""

    def of_library(
        self, options: LanguageOptions, _: DataFolder, others: Sequence[NamedModel]
    ) -> tuple[LanguageAnswer, ...]:
        self.asked.append(options)
        self.others = others
        if self.refusal:
            raise LanguageError(self.refusal)
        names = dict.fromkeys((*(it.name for it in others), *LIBRARY))
        return tuple(replace(it, contexts=(), prompts=()) for name in names for it in self._all(name, options))

    def stored(
        self, models: Sequence[NamedModel], options: LanguageOptions, _: DataFolder
    ) -> tuple[LanguageAnswer, ...]:
        return tuple(it for model in models for it in self._all(model.name, options))

    def _all(self, name: str, options: LanguageOptions) -> Iterator[LanguageAnswer]:
        found = LIBRARY.get(name) or predicted(20.0, model=name, title="")
        if name in self.measured:
            found = replace(answer(40.0), model=name, title=found.title, measured_when=WHEN)
        for precision in options.precisions:
            for threads in options.threads or (2,):
                rate = found.decode_tokens_per_second * min(1.0, 4 / precision.bits)
                yield replace(
                    found,
                    precision=precision.value,
                    threads=threads,
                    prompt_tokens=options.prompt,
                    generated_tokens=options.generate,
                    decode_tokens_per_second=rate,
                    what_ifs=what_ifs() if options.what_ifs else (),
                )


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Answers:
    made = Answers()
    monkeypatch.setattr(asking, "library_answers", made.of_library)
    monkeypatch.setattr(asking, "stored_answers", made.stored)
    # Not every host has each runtime.
    monkeypatch.setattr(language_answers, "runtimes_here", lambda _: ("onnxruntime", "openvino"))
    monkeypatch.setattr(language_answers, "precisions_here", lambda: tuple(WeightPrecision))
    return made


@pytest.fixture
def process(process: Process, monkeypatch: pytest.MonkeyPatch) -> Process:
    runtime = Runtime("here", sys.executable, "onnxruntime", "1.32", "3.11", Settings(2))
    monkeypatch.setattr(
        asking,
        "questions",
        lambda models, *_: tuple(LanguageQuestion(it, runtime, WeightPrecision.INT4, 512, 128) for it in models),
    )
    return process


def screen_of(session: WorkbenchSession) -> LanguageScreen:
    return LanguageScreen(session, Config)


def listed(pilot: Pilot[None]) -> list[str]:
    """Return the models of the table in their order."""
    assert isinstance(pilot.app.screen, LanguageScreen)
    return [it.model for it in pilot.app.screen._models.found]


async def test_the_library_is_predicted_sorted_filtered_and_each_model_has_an_answer_and_curves(
    new: DataFolder, answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(app_on(new), MEDIUM) as pilot:
        await press(pilot, "escape")
        workbench = pilot.app.screen
        await press(pilot, "M", "j")
        shown = screen_text(pilot)
        assert "How fast does Llama 3.2 1B run on this host?" in shown
        assert "~38.2 tokens per second, the first after ~727 ms; 1.1 GB of 23 GB" in shown.splitlines()[1]
        assert "1 Language models 7, by speed" in shown and "4 Speed by length of Llama 3.2 1B" in shown
        # Those that do not fit come last.
        assert listed(pilot)[0] == "smollm2-135m" and listed(pilot)[-1] == "llama-3.3-70b"
        await press(pilot, "y")
        assert pilot.app.clipboard == f"dlbricks llm {SMALL} --threads 2"
        await check_all(pilot, "language")
        await press(pilot, "2", "G", shows="the best for a whole answer comes first")
        await press(pilot, "4", "G", shows="first token")
        await press(pilot, "1", "enter", "g", shows="prefill speed")

        await resize(pilot, WIDE)
        await press(pilot, "1", "f")
        assert "4 of 7, that fit, by speed" in screen_text(pilot) and "llama-3.3-70b" not in listed(pilot)
        await press(pilot, "equals_sign", '"1e9"', "enter", shows="Give a number above 0 and up to 1,000,000")
        await press(pilot, "ctrl+u", '"20"', "enter", shows="2 of 7, that fit, at least 20 tokens/s, by speed")
        await press(pilot, "f", "equals_sign", "escape", "s", "s", "s", "s")
        # Also a fast model needs the memory to be fast.
        assert listed(pilot) == [SMALL, "smollm2-135m"] and "by name" in screen_text(pilot)
        await press(pilot, "slash", '"nosuch"', shows="No model matches the search.")
        assert "How fast does a language model run on this host?" in screen_text(pilot)
        await press(pilot, "escape", "equals_sign", "ctrl+u", "enter", "s")
        assert len(listed(pilot)) == len(LIBRARY)

        answers.refusal = "no runtime of this host runs language models: pip install onnxruntime"
        await press(pilot, "r")
        assert screen_text(pilot).splitlines()[1].strip() == answers.refusal
        await press(pilot, "m", "escape")
        assert workbench.is_current and isinstance(workbench, WorkbenchScreen)
        assert told(pilot)[-1] == "Select a model to measure."
        # The line of work of this host leads here, too.
        workbench.follow_job(WorkKind.LANGUAGE, SMALL)
        await press(pilot, on=LanguageScreen)


async def test_the_threads_of_the_config_count_also_while_the_screen_is_open(
    new: DataFolder, answers: Answers, library_without_latencies: None
) -> None:
    new.path.mkdir()
    new.config.write_text("[run]\nthreads = 2\n")
    async with running(app_on(new), MEDIUM) as pilot:
        await press(pilot, "escape", "M")
        assert answers.asked[-1].threads == (2,)
        new.config.write_text("[run]\nthreads = 16\n")
        pilot.app._preferences.reload()  # type: ignore[attr-defined]
        await settled(pilot)
        assert answers.asked[-1].threads == (16,)


async def test_models_are_opened_by_path_and_name_and_settings_lead_to_other_answers(
    new: DataFolder, answers: Answers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.gguf").touch()
    (opened,) = (it for it in library_models() if it.name == "gemma-3-1b")
    paths: list[str] = []

    def open_(text: str) -> NamedModel:
        if text in LIBRARY:
            return replace(opened, name=text)
        paths.append(text)
        if "nosuch" in text:
            raise LanguageError("no language model 'nosuch': `dlbricks llm --list` shows all names")
        return replace(opened, name="mine" if "mine" in text else SMALL)

    monkeypatch.setattr(language_answers, "open_language_model", open_)
    async with showing(new, screen_of, MEDIUM) as pilot:
        await press(pilot, "o", '"mi"', on=OpenLanguageModelScreen)
        await press(pilot, "tab", "enter")
        assert paths == [str(tmp_path / "mine.gguf")]
        assert "How fast does mine run on this host?" in screen_text(pilot) and "mine" in listed(pilot)
        # A name of the library needs no other row.
        await press(pilot, "o", '"meta-llama/Llama-3.2-1B"', "enter")
        assert paths[-1] == "meta-llama/Llama-3.2-1B" and len(listed(pilot)) == len(LIBRARY) + 1
        assert "How fast does Llama 3.2 1B run on this host?" in screen_text(pilot)
        # A file that is called so counts in its place.
        assert [(it.name, it.architecture) for it in answers.others][1:] == [(SMALL, opened.architecture)]
        await press(pilot, "o", '"nosuch"', "enter", on=ErrorScreen, shows="no language model 'nosuch'")
        await press(pilot, "escape", "o", "escape")

        await press(pilot, "5", "l", "equals_sign", "ctrl+u", '"3000"', "enter", "j", "l", "h", "j", "l")
        assert answers.asked[-1].prompt == 3000 and answers.asked[-1].generate == 128
        assert answers.asked[-1].precisions == (WeightPrecision.INT8,)
        assert "int8, 2 threads; a prompt of 3,000 tokens, 128 generated" in screen_text(pilot)
        await press(pilot, "j", "l", "l", "l", "l")
        assert answers.asked[-1].caches == (CachePrecision.INT8,)
        # Several would be several answers for each model.
        await press(pilot, "j", "enter", '"1,2"', "enter", shows="Give a whole number from 1 to ")
        await press(pilot, "ctrl+u", '"3"', "enter", "j", "l")
        assert (answers.asked[-1].threads, answers.asked[-1].runtimes) == ((3,), ("onnxruntime",))
        await press(pilot, "k", "equals_sign", "ctrl+u", "enter", "j", "j", "l", "j", "right")
        assert answers.asked[-1].best_for is LanguagePhase.PREFILL
        assert answers.asked[-1].threads == () and "blocks and whole" in screen_text(pilot)


async def test_the_selected_model_is_measured_in_a_process_that_goes_on_without_the_screen(
    new: DataFolder, answers: Answers, process: Process
) -> None:
    async with showing(new, screen_of, WIDE) as pilot:
        # There is nothing to cancel yet.
        await press(pilot, "x", "j")
        await pilot.press("m")
        await eventually(pilot, process.has_begun)
        order = process.order(LanguageOrder)
        assert not order.end_to_end and [it.model.name for it in order.questions] == [SMALL]
        await shows(pilot, "the measurement starts")
        process.write(BEGINS, ROUND)
        await shows(pilot, ROUND.line)
        # Others can be looked at meanwhile.
        await pilot.press("j", "m")
        await shows(pilot, "Qwen3 30B A3B")
        await eventually(pilot, lambda: told(pilot) == ["A model is being measured: x cancels it."])
    answers.measured.add(SMALL)
    process.write(DONE)
    process.end()
    async with showing(new, screen_of, WIDE) as pilot:
        # The row and the answer have the measured figures.
        await eventually(pilot, lambda: all_seen(new))
        await press(pilot, "j", shows=("6 h ago", "40.0 tokens per second, the first after "))
        await pilot.press("m")
        await eventually(pilot, lambda: process.has_begun(2))
        process.write(BEGINS, number=2)
        await shows(pilot, f"{SMALL}, {VARIANT}: measuring")
        await pilot.press("x")
        await eventually(pilot, lambda: "The measurement is cancelled; what it has stored is kept." in told(pilot))
        assert process.has_ended(2)
        process.write(LanguageFailed(f"{SMALL}: not measured: the worker was lost"), number=3)
        process.end(1, 3)
        await press(pilot, "m", shows=f"{SMALL}: not measured: the worker was lost")


async def test_a_screen_that_is_left_looks_nothing_up_beside_the_measurement(
    new: DataFolder, answers: Answers, process: Process
) -> None:
    async with showing(new, screen_of, WIDE) as pilot:
        await press(pilot, "j")
        await pilot.press("m")
        await eventually(pilot, process.has_begun)
        looked_up = len(answers.asked)
        await pilot.press("escape")
        await eventually(pilot, lambda: len(pilot.app.screen_stack) == 1)
        await settled(pilot)
        assert len(answers.asked) == looked_up and not process.has_ended()


async def test_all_executions_are_measured_after_a_question_and_a_what_if_is_proved(
    new: DataFolder, answers: Answers, process: Process
) -> None:
    async with showing(new, screen_of, WIDE) as pilot:
        await press(pilot, "j", "c", on=CompareLanguageScreen)
        assert "Llama 3.2 1B was not measured in " in screen_text(pilot)
        await check_all(pilot, "language-compare")
        await press(pilot, "escape")
        assert not process.has_begun()
        await press(pilot, "3", "s")
        shown = screen_text(pilot)
        assert "3 What could be faster 3, by prefill" in shown and "weights as int4" in shown
        # The first one by its gain for the prompt.
        await press(pilot, "y", "enter")
        assert pilot.app.clipboard == "an engine that takes one number of threads for each phase"
        assert "measured -30.0 %. The proof refutes the prediction" in told(pilot)[-1]
        await press(pilot, "G")
        await pilot.press("v")
        await eventually(pilot, process.has_begun)
        order = process.order(LanguageOrder)
        base, changed = order.questions
        assert changed.precision is base.precision and changed.model.architecture.scores_last_only
        await shows(pilot, "running")
        process.write(DONE)
        process.end()
        await eventually(pilot, lambda: "running" not in screen_text(pilot))

        screen = pilot.app.screen
        assert isinstance(screen, LanguageScreen)
        await eventually(pilot, lambda: screen.job is None)
        # Its results are read anew, with all executions.
        await settled(pilot)
        process.write(DONE, number=2)
        process.end(number=2)
        await press(pilot, "c", "enter")
        await eventually(pilot, lambda: process.has_begun(2))


async def test_a_what_if_whose_proof_is_refused_is_not_running(
    new: DataFolder, answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> tuple[()]:
        raise LanguageError("no runtime here can do it")

    monkeypatch.setattr(asking, "questions", refuse)
    async with showing(new, screen_of, WIDE) as pilot:
        await press(pilot, "3", "j", "v", shows="no runtime here can do it")
        assert "running" not in screen_text(pilot)


async def test_the_systems_and_the_users_of_the_selected_model_are_shown(
    new: DataFolder, answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted: list[tuple[str, int]] = []

    def on_systems(models: Sequence[NamedModel], options: LanguageOptions, _: DataFolder) -> tuple[()]:
        wanted.extend((it.name, options.prompt) for it in models)
        return ()

    simulated = threading.Event()
    simulated.set()

    def load(model: NamedModel, options: TokenLoadOptions, _: DataFolder) -> TokenLoadAnswer:
        simulated.wait()
        if options.threads:
            raise LanguageError("users are served by ONNX Runtime only")
        return replace(token_load_answer(), model=model.name)

    looked_up = threading.Event()
    looked_up.set()

    def stored(models: Sequence[NamedModel], options: LanguageOptions, data: DataFolder) -> tuple[LanguageAnswer, ...]:
        looked_up.wait()
        return answers.stored(models, options, data)

    monkeypatch.setattr(asking, "stored_answers", stored)
    monkeypatch.setattr("dlbricks_tui.tui.language.language_on_systems", on_systems)
    monkeypatch.setattr(loads, "token_load", load)
    async with showing(new, screen_of, WIDE) as pilot:
        first = listed(pilot)[0]
        await press(pilot, "S", shows=f"Which system is quickest and cheapest for {first}?")
        assert wanted == [(first, 512)]
        await press(pilot, "escape", "u", on=LanguageScreen)
        shown = screen_text(pilot)
        assert "~4 users (4 to 4) by static batches; ~2 one after another" in shown
        assert "First token (s) by users, p90" in shown and "Later tokens (ms) by users, p90" in shown
        # Another model has its answer again.
        await press(pilot, "1", "j")
        assert "by static batches" not in screen_text(pilot)
        # What was still being looked up does not take their place.
        looked_up.clear()
        await pilot.press("j")
        await shows(pilot, f"How fast does {LIBRARY[listed(pilot)[2]].title} run")
        await pilot.press("u")
        await shows(pilot, "by static batches")
        looked_up.set()
        await settled(pilot)
        assert "by static batches" in screen_text(pilot)
        # Users under other settings come too late.
        simulated.clear()
        await pilot.press("1", "u", "5", "l")
        await eventually(pilot, lambda: "by static batches" not in screen_text(pilot))
        simulated.set()
        await settled(pilot)
        assert "by static batches" not in screen_text(pilot)
        await press(pilot, "j", "j", "j", "j", "l", "1", "u", shows="users are served by ONNX Runtime only")
