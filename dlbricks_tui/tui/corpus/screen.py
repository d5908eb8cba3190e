"""The screen of the corpus: what repeats within and across models, and how accurate estimates are."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from textual import on
from textual.worker import get_current_worker

from dlbricks_tui.bricks.corpus import Corpus, ModelBricks, compare, model_bricks
from dlbricks_tui.bricks.cutting import Cut
from dlbricks_tui.bricks.decomposition import Cutting
from dlbricks_tui.documents.corpus import GroupAccuracy, totals_words
from dlbricks_tui.documents.lines import Line, Span, line
from dlbricks_tui.estimate.comparison import accuracy, by_group
from dlbricks_tui.estimate.inquiry import Inquiry
from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.loading import UNLOADABLE
from dlbricks_tui.store.selections import combinations, equal
from dlbricks_tui.tui.choices import Choices, change_setting, setting_named
from dlbricks_tui.tui.corpus.panels import GranularitiesPanel, KindsPanel, LikenessPanel, UniquenessPanel
from dlbricks_tui.tui.keys import scopes
from dlbricks_tui.tui.keys.keymap import Hint, key
from dlbricks_tui.tui.model_reader import ModelReader
from dlbricks_tui.tui.open_model import ModelSpec
from dlbricks_tui.tui.session import Session
from dlbricks_tui.tui.widgets.screens import AnswerScreen
from dlbricks_tui.tui.workbench.work import pause_after
from dlbricks_tui.wording.numbers import counted, measured_ago


class ComparedModels(NamedTuple):
    """The comparison of all models, or of the first of them while the others are being read."""

    corpus: Corpus
    # The number of models that were tried so far.
    tried: int
    # The reasons why some of them cannot be read.
    refused: tuple[str, ...]

    @property
    def unread(self) -> int:
        return self.tried - len(self.corpus.models) - len(self.refused)


# Often enough to show progress, seldom enough that comparing and drawing take little of the time.
SECONDS_BETWEEN_TELLING = 0.3
# Yields the interpreter to the user interface.
_BREATH_SECONDS = 0.002


def compare_models(
    reader: ModelReader, specs: Sequence[ModelSpec], read_all: bool, *, measuring: bool = False
) -> Iterator[ComparedModels]:
    """Read and compare models; `read_all` includes those that were never read before.

    While a run measures, it goes slowly, so that it does not disturb the run.
    """
    worker = get_current_worker()
    found: list[ModelBricks] = []
    refused: list[str] = []
    told = time.monotonic()
    for done, spec in enumerate(specs, 1):
        if worker.is_cancelled:
            return
        began = time.monotonic()
        try:
            decomposition = reader.decompose_model(spec) if read_all else reader.decompose_cached(spec)
        except UNLOADABLE as error:
            refused.append(f"{spec.source.name}: {error}")
            continue
        if decomposition is not None:
            found.append(replace(model_bricks(decomposition), name=spec.source.name))
        if time.monotonic() - told > SECONDS_BETWEEN_TELLING:
            yield ComparedModels(compare(found), done, tuple(refused))
            # Comparing takes longer the more models there are, so the interval starts after it.
            told = time.monotonic()
        if measuring:
            pause_after(time.monotonic() - began, measuring=True)
        else:
            time.sleep(_BREATH_SECONDS)
    yield ComparedModels(compare(found), len(specs), tuple(refused))


def find_accuracies(
    session: Session, specs: Sequence[ModelSpec], *, measuring: bool = False
) -> tuple[GroupAccuracy, ...]:
    """Return how accurate the estimates of models measured end to end are, at each granularity that was run."""
    worker = get_current_worker()
    with session.store.held() as store:
        whole = store.select(equal(of="model"), order=()).distinct("name")
        ways = {(run.granularity, run.level) for run in store.runs()}
        # Imported results belong to no run; they are of single layers.
        ways |= {(1, it.level) for it in combinations(store.select(order=())) if it.pairs}
    known = [spec for spec in specs if spec.source.name in whole]
    estimates: list[SystemEstimate] = []
    for granularity, level in sorted(ways):
        for spec in known:
            if worker.is_cancelled:
                return ()
            began = time.monotonic()
            estimates += _estimates(session, spec, granularity, level)
            pause_after(time.monotonic() - began, measuring=measuring)
    groups = by_group(estimates)
    accuracies = [
        GroupAccuracy(group, found, measured_ago(each))
        for group, each in groups.items()
        if (found := accuracy(each)) is not None
    ]
    accuracies.sort(key=lambda it: (it.group.way, it.group.granularity, it.group.cut.value))
    return tuple(accuracies)


def _estimates(session: Session, spec: ModelSpec, granularity: int, level: Level) -> Iterator[SystemEstimate]:
    cutting = Cutting(granularity, spec.cutting.cut, spec.cutting.order)
    decomposition = session.reader.decompose_cached(replace(spec, level=level, cutting=cutting))
    if decomposition is not None:
        named = replace(decomposition, graph=replace(decomposition.graph, name=spec.source.name))
        with session.store.held() as store:
            yield from Inquiry(store, named).everywhere()


QUESTION = "How many layers of these models are repeated?"


class CorpusScreen(AnswerScreen[None]):
    """Reads the models in a thread, then compares them."""

    scope = scopes.CORPUS
    CSS_PATH = "corpus.tcss"
    WANTS_NEW_RESULTS = True
    WAITS_FOR_RUN = True
    ABOUT = (
        "The marked models of the workbench, or the whole library. Reading a model for the first time at this level "
        "takes the framework a moment; {corpus.read_all} reads those models too."
    )

    def __init__(
        self, session: Session, specs: Callable[[Choices], Sequence[ModelSpec]], choices: Choices, *, measuring: bool
    ) -> None:
        self._uniqueness = UniquenessPanel()
        self._kinds = KindsPanel()
        self._likeness = LikenessPanel()
        self._granularities = GranularitiesPanel()
        super().__init__(self._uniqueness, self._kinds, self._likeness, self._granularities)
        self._session = session
        self._specs_for = specs
        # The paper counts single written layers, whatever the workbench shows.
        self._choices = replace(choices, level=Level.WRITTEN, granularity=1, cut=Cut.CHAIN)
        self._measuring = measuring
        self._read_all = False
        self._compared: ComparedModels | None = None
        self._progress = ""

    def look(self) -> None:
        self._start_reading()
        self._update_estimate()

    def take_new_results(self) -> None:
        # They arrive once no run measures any more.
        self._measuring = False
        self._update_estimate()

    def _update_estimate(self) -> None:
        specs = self._specs_for(self._choices)
        find = partial(find_accuracies, self._session, specs, measuring=self._measuring)
        self.run_in_thread(find, "accuracy", self._granularities.show)

    @on(UniquenessPanel.Opened, "#uniqueness")
    def _model_chosen(self) -> None:
        if self._uniqueness.selected is not None and self._uniqueness.selected.number is not None:
            self._likeness.go_to_model(self._uniqueness.selected.number - 1)
            self.go_to(self._likeness)

    def action_read_all(self) -> None:
        self._measuring, self._read_all = False, True
        self.look()

    def action_change(self, setting: str, step: int) -> None:
        choices = change_setting(setting_named(setting), self._choices, step)
        if choices != self._choices:
            self._choices = choices
            self._start_reading()

    def _start_reading(self) -> None:
        self._say(line(Span("Reading the models.", "muted")))
        self._show(None, "reading the models")
        specs = self._specs_for(self._choices)
        reader, measuring = self._session.reader, self._measuring
        compare = partial(compare_models, reader, specs, self._read_all, measuring=measuring)
        self.run_steps_in_thread(compare, "compare", partial(self._models_compared, len(specs)))

    def _models_compared(self, total: int, compared: ComparedModels) -> None:
        reading = compared.tried < total
        if not reading and not compared.corpus.models:
            self._say(line("None of these models was read at this level yet."), Hint("{corpus.read_all} reads them."))
        slowly = " slowly, as a run measures" if self._measuring else ""
        self._show(compared, f"reading{slowly}, {compared.tried} of {counted(total, 'model')}" if reading else "")

    def _say(self, *lines: Line | Hint) -> None:
        for panel in (self._uniqueness, self._kinds, self._likeness):
            panel.show_placeholder(*lines)

    def _show(self, compared: ComparedModels | None, progress: str) -> None:
        self._compared, self._progress = compared, progress
        corpus = compared.corpus if compared and compared.corpus.models else None
        for panel in (self._uniqueness, self._kinds):
            panel.show(corpus, self._unit)
        self._likeness.show(corpus)
        self.head_changed()

    @property
    def _unit(self) -> str:
        return "layer" if self._choices.granularity == 1 else "sequence"

    def question(self) -> str:
        return QUESTION

    def answer(self) -> Iterable[Line]:
        compared = self._compared
        if compared is None:
            yield line(Span(f" {self._progress}", "muted"))
            return
        yield line(
            Span(" "),
            Span(f"{self._progress}; so far: " if self._progress else "", "warn"),
            Span(totals_words(compared.corpus, self._unit), "strong"),
        )
        for each in compared.refused[:1]:
            yield line(Span(f" Left out: {each}", "warn"))
        if len(compared.refused) > 1:
            yield line(Span(f" and {len(compared.refused) - 1} more cannot be read", "warn"))

    def state(self) -> Line:
        choices, compared = self._choices, self._compared
        longest = choices.granularity
        how = f" {choices.level.value} layers" + (f" in sequences of up to {longest}" if longest > 1 else "")
        if compared is None:
            return (Span(how, "muted"),)
        unread = f"; {compared.unread:,} never read, {key('corpus.read_all')} reads them" if compared.unread else ""
        return (Span(how, "muted"), Span(unread, "warn"))
