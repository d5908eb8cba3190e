"""The screen of the analysis of a model: bounds, what-ifs, the gap, and the layers."""

from collections.abc import Iterable, Sequence
from functools import partial

from textual import on

from dlbricks_tui.analysis.kernels import TimedKernel
from dlbricks_tui.analysis.what_if import WhatIf
from dlbricks_tui.answers.analysing import MeasuringPlan
from dlbricks_tui.config.config import Config
from dlbricks_tui.documents.analysis import AnalysisDocument
from dlbricks_tui.documents.lines import Line, Span, line
from dlbricks_tui.documents.what_ifs import gains_sentence
from dlbricks_tui.errors import UserError
from dlbricks_tui.host.peaks import PEAKS_SECONDS
from dlbricks_tui.jobs.events import Event, Waiting
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.tui import messages
from dlbricks_tui.tui.analysis import work
from dlbricks_tui.tui.analysis.panels import (
    BoundsPanel,
    ChangePanel,
    KernelsScreen,
    LayersPanel,
    MeasureScreen,
    RooflineScreen,
    WhatIfsPanel,
)
from dlbricks_tui.tui.analysis.work import Proving
from dlbricks_tui.tui.choices import Choices
from dlbricks_tui.tui.keys import scopes
from dlbricks_tui.tui.keys.keymap import Hint, key
from dlbricks_tui.tui.open_model import ModelSpec
from dlbricks_tui.tui.run.snapshot import RunSnapshot
from dlbricks_tui.tui.saving import show_message
from dlbricks_tui.tui.session import Session
from dlbricks_tui.tui.widgets.screens import AnswerScreen
from dlbricks_tui.wording.checks import what_if_words
from dlbricks_tui.wording.numbers import duration, measured_ago, names_of, percent


class AnalysisScreen(AnswerScreen[None]):
    """Analyses the open model in a thread."""

    scope = scopes.ANALYSIS
    CSS_PATH = "analysis.tcss"
    WRAPS_STATE = True
    WANTS_NEW_RESULTS = True
    ABOUT = (
        "How fast the open model could be, from everything that was measured of it on the system of the estimate, and "
        "what is worth changing: parallel layers, kernels, runtimes, fusion, precision, threads and batch size. "
        "{analysis.prove} carries out the selected change and measures its gain, in a minute at most; "
        "{analysis.measure} measures what the what-ifs and the roofline lack."
    )

    def __init__(
        self, session: Session, spec: ModelSpec, choices: Choices, config: Config, run: RunSnapshot | None
    ) -> None:
        self._bounds = BoundsPanel()
        self._what_ifs = WhatIfsPanel()
        self._change = ChangePanel()
        self._layers = LayersPanel()
        super().__init__(self._bounds, self._what_ifs, self._change, self._layers)
        self._session = session
        self._analyse = partial(work.analyse, session, spec, choices, config)
        self._model = spec.source.name
        self._spec = spec
        self._document: AnalysisDocument | None = None
        # What is said in its place.
        self._said = Hint("")
        self._proving: Proving | None = None
        # The reasons why proofs failed, by the ids of the what-ifs.
        self._failures: dict[str, str] = {}
        # The kernels of the layers, once the runtime has told them.
        self._kernels: Sequence[TimedKernel] = ()
        # True while a process measures the peaks of this host, and what it waits for.
        self._measures_peaks = False
        self._peaks_wait_for = ""
        self._run = run
        # True if there are results that the analysis does not have yet.
        self._is_outdated = True
        self._has_looked = False

    def on_mount(self) -> None:
        begun = partial(work.Proving.begun, self._model, self._session.data)
        self.run_in_thread(begun, "begun", self._go_on)

    @property
    def _measuring(self) -> bool:
        return self._measures_peaks or self._run_measures

    @property
    def _run_measures(self) -> bool:
        return self._run is not None and self._run.measures

    def show_run(self, run: RunSnapshot) -> None:
        """Take the state of the followed run; once it ends, analyse what it has measured."""
        before, self._run = self._run_line(), run
        if self._run_line() != before:
            self.head_changed()
        if not self._measuring and self._is_outdated:
            self.take_new_results()

    def _run_line(self) -> Line:
        """Return how far a run is that measures; nothing without one."""
        if self._measures_peaks:
            told = f"are measured, for about {duration(PEAKS_SECONDS)}"
            told = f"wait for {self._peaks_wait_for}" if self._peaks_wait_for else told
            return line(Span(f" The peaks of this host {told}.", "warn"))
        if self._run is None or not self._run_measures:
            return ()
        share = "" if self._run.share is None else f", {percent(self._run.share)} done"
        return line(Span(f" A run measures{share}; its end brings the analysis up to date.", "warn"))

    def take_new_results(self) -> None:
        """Analyse the model; while a run measures once, and again only if the user asks for it."""
        self._is_outdated = True
        if self._proving is None and not (self._measuring and self._has_looked):
            self.look()

    @on(WhatIfsPanel.Settled, "#what-ifs")
    def _show_change(self) -> None:
        self._change.show(self._what_ifs.selected, self._proving, self._failures)

    @on(WhatIfsPanel.Opened, "#what-ifs")
    def _what_if_opened(self) -> None:
        self.go_to(self._change)

    def look(self) -> None:
        if self._proving is not None:
            self._say_proving()
            return
        self._is_outdated = self._measuring
        self._has_looked = True
        if self._document is None:
            self._say("Reading the model as each runtime has it.", "muted")
        self.run_in_thread(self._analyse, "analysis", self._analysed, self._say)

    def action_leave(self) -> None:
        if self._proving is not None:
            show_message(self.app, "The proof goes on in the background; this screen shows it again.")
        super().action_leave()

    def action_cancel(self) -> None:
        if self._proving is not None:
            self._proving.stop()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "cancel":
            return self._proving is not None
        return super().check_action(action, parameters)

    def action_show_roofline(self) -> None:
        found = None if self._document is None else self._document.found
        picture = None if self._document is None else self._document.roofline
        if picture is not None:
            self.app.push_screen(RooflineScreen(self._model, picture))
        else:
            measures = f": {key('analysis.measure')} measures them" if found is not None and found.lacks_peaks else ""
            self.notify(f"The peaks of the system are not known for this number of threads and precision{measures}.")

    def action_show_kernels(self) -> None:
        if self._proving is not None:
            self._say_proving()
        elif self._document is not None:
            box = KernelsScreen(self._document.found, self._session.data, self._kernels)
            self.app.push_screen(box, self._keep_kernels)

    def _keep_kernels(self, found: Sequence[TimedKernel] | None) -> None:
        self._kernels = found or ()

    # Proofs

    def action_prove(self) -> None:
        chosen = self._what_ifs.chosen
        possible = tuple(it.what_if for it in chosen if not it.is_bound)
        if possible:
            self._prove(possible)
        elif chosen:
            self.notify(f"No runtime can do this: {names_of([it.words for it in chosen])}.")
        else:
            self.notify("There is no what-if to prove.")

    def _prove(self, what_ifs: tuple[WhatIf, ...]) -> None:
        if self._proving is not None:
            self._say_proving()
        elif self._document is not None:
            check = partial(work.require_this_host, self._document.found)
            start = partial(self._start_proving, what_ifs)
            self.run_in_thread(check, "refusal", lambda _: start(), partial(self.notify, severity="warning"))

    def _say_proving(self) -> None:
        if self._proving is not None:
            self.notify(f"The proof goes on ({what_if_words(self._proving.now)}): {key('analysis.cancel')} cancels it.")

    def _start_proving(self, what_ifs: tuple[WhatIf, ...]) -> None:
        from dlbricks_tui.analysis.proving import ProofOrder

        if self._proving is None:
            for each in what_ifs:
                self._failures.pop(each.id, None)
            order = ProofOrder(self._spec.source, what_ifs, self._spec.shapes)
            self._go_on(work.Proving.new(order, self._session.data))

    def _go_on(self, proving: Proving | None) -> None:
        if proving is not None and self._proving is None:
            self._proving = proving
            self._show_proving()
            self.run_worker(self._follow(proving), group="proof", exit_on_error=False)

    async def _follow(self, proving: Proving) -> None:
        try:
            await proving.follow(self._take_proof)
        finally:
            self._proving = None
            self._show_proving()
            if proving.stopped:
                self.notify("The proof is cancelled; those before it are kept.")
            if self._is_outdated:
                self.take_new_results()

    def _take_proof(self, message: Event) -> None:
        from dlbricks_tui.analysis.proving import ProofDone

        if isinstance(message, ProofDone):
            if message.gain is None:
                self._failures[message.what_if] = message.failure
            elif self._document is not None:
                self._document = self._document.with_proof(message.what_if, message.gain)
                self._what_ifs.show(self._document.changes)
                self.head_changed()
        self._show_proving()

    def _show_proving(self) -> None:
        self._what_ifs.show_proving(self._proving)
        self._show_change()
        self.refresh_bindings()

    # What the what-ifs lack

    def action_measure(self) -> None:
        if self._proving is not None:
            self._say_proving()
        elif self._measuring:
            measuring = "The peaks are measured" if self._measures_peaks else "A run is measuring"
            self.notify(f"{measuring}: what is missing can be measured once that has ended.")
        elif self._document is not None:
            plan = partial(work.plan_measuring, self._document.found, self._session.data, self._spec.shapes)
            self.run_in_thread(plan, "plan", self._planned, self.notify)

    def _planned(self, plan: MeasuringPlan) -> None:
        if plan.is_empty:
            self.notify("The what-ifs lack nothing that this host can measure.")
        else:
            self.ask(MeasureScreen(plan), lambda _: self._measure(plan))

    def _measure(self, plan: MeasuringPlan) -> None:
        """Start all that is missing at once: each process waits in the line of this host, also after this one ends."""
        if plan.peaks_threads is not None:
            self._measures_peaks = True
            self.head_changed()
            self.run_worker(self._measure_peaks(plan.peaks_threads), group="peaks", exit_on_error=False)
        if plan.requests:
            start = partial(self._start_runs, plan.requests)
            self.run_in_thread(start, "start run", lambda run: self.post_message(messages.RunBegun(run)))

    def _start_runs(self, requests: Sequence[RunRequest]) -> str:
        """Start runs, which have their turns in this order, and return the first."""
        first, *_ = [self._session.runs.start(request) for request in requests]
        return first

    async def _measure_peaks(self, threads: int) -> None:
        try:
            await work.peaks_process(threads, self._session.data).follow(self._show_waiting)
        except UserError as error:
            self.notify(str(error), severity="warning")
        self._measures_peaks, self._peaks_wait_for = False, ""
        self.head_changed()
        self.take_new_results()

    def _show_waiting(self, event: Event) -> None:
        self._peaks_wait_for = event.holder if isinstance(event, Waiting) else ""
        self.head_changed()

    def _analysed(self, found: AnalysisDocument) -> None:
        self._document = found
        self._kernels = ()
        self._bounds.show(found)
        self._what_ifs.show(found.changes)
        self._layers.show(found.groups)
        self._layers.show_picture(found.roofline)
        self.head_changed()

    def _say(self, text: str, style: str = "warn") -> None:
        """Show a text in place of the analysis."""
        self._document, self._said = None, Hint(f" {text}", style)
        for panel in (self._bounds, self._what_ifs, self._layers):
            panel.show_placeholder(Hint(text, style))
            panel.show_picture(None)
        self.head_changed()

    def question(self) -> str:
        return f"How fast could {self._model} be, and which change is worth making?"

    def answer(self) -> Iterable[Line]:
        if self._document is None:
            yield self._said.line
            return
        told = gains_sentence(self._document.changes)
        if self._document.is_unmeasured:
            yield Hint(" Nothing was measured yet: {analysis.measure} measures it.", "warn").line
        elif self._document.changes:
            yield line(Span(f" {told}", "strong"))
        else:
            yield Hint(f" {told} {{analysis.measure}} measures others.", "warn").line
        yield line(Span(f" {self._document.headline}", "text"))

    def state(self) -> Line:
        run = self._run_line()
        if run or self._document is None:
            return run
        told = [self._document.way, measured_ago([self._document.found.baseline.found])]
        return line(Span(f" {', '.join(filter(None, told))}", "muted"))
