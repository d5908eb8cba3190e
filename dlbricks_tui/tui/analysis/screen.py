"""The screen of the analysis of a model: bounds, what-ifs, the gap, and the layers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from textual import on

from dlbricks_tui.api import jobs
from dlbricks_tui.api.analysing import Analyser, MeasuringPlan, plan_here, proof_job
from dlbricks_tui.api.estimating import open_estimator
from dlbricks_tui.api.followed_jobs import PeaksJob, ProofJob, peaks_job
from dlbricks_tui.api.followed_runs import RunSnapshot
from dlbricks_tui.api.open_models import Choices, ModelSpec
from dlbricks_tui.api.session import WorkbenchSession, options_of
from dlbricks_tui.config.config import Config
from dlbricks_tui.documents.analysis import AnalysisDocument
from dlbricks_tui.documents.lines import Line, Span, line
from dlbricks_tui.documents.what_ifs import gains_sentence
from dlbricks_tui.tui import messages
from dlbricks_tui.tui.analysis.panels import (
    BoundsPanel,
    ChangePanel,
    KernelsScreen,
    LayersPanel,
    MeasureScreen,
    RooflineScreen,
    WhatIfsPanel,
)
from dlbricks_tui.tui.keys import scopes
from dlbricks_tui.tui.keys.keymap import Hint, key
from dlbricks_tui.tui.run.work_screen import WorkScreen
from dlbricks_tui.wording.numbers import duration, measured_ago, names_of, percent

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dlbricks_tui.analysis.kernels import TimedKernel


class AnalysisScreen(WorkScreen[None, ProofJob]):
    """Analyses the open model in a thread, and proves what-ifs in a process."""

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
    WORK = "The proof"
    UNDER_WAY = "The proof goes on ({job.title})"
    CANCELLED = "The proof is cancelled; those before it are kept."

    def __init__(
        self, session: WorkbenchSession, spec: ModelSpec, choices: Choices, config: Config, run: RunSnapshot | None
    ) -> None:
        self._bounds = BoundsPanel()
        self._what_ifs = WhatIfsPanel()
        self._change = ChangePanel()
        self._layers = LayersPanel()
        super().__init__(self._bounds, self._what_ifs, self._change, self._layers)
        self._data = session.data
        self._analyse = partial(analyse, session, spec, choices, config)
        self._model = spec.source.name
        self._spec = spec
        self._document: AnalysisDocument | None = None
        # What is said in its place.
        self._said = Hint("")
        # The reasons why proofs failed, by the ids of the what-ifs.
        self._failures: dict[str, str] = {}
        # The kernels of the layers, once the runtime has told them.
        self._kernels: Sequence[TimedKernel] = ()
        # The peaks of this host while they are measured.
        self._peaks: PeaksJob | None = None
        self._run = run
        # True if there are results that the analysis does not have yet.
        self._is_outdated = True
        self._has_looked = False

    def on_mount(self) -> None:
        self.find_job(partial(ProofJob.begun, self._data, self._model))

    @property
    def _measuring(self) -> bool:
        return self._peaks is not None or (self._run is not None and self._run.measures)

    def show_run(self, run: RunSnapshot) -> None:
        """Take the state of the followed run; once it ends, analyse what it has measured."""
        before, self._run = self._run_line(), run
        if self._run_line() != before:
            self.head_changed()
        if not self._measuring and self._is_outdated:
            self.take_new_results()

    def _run_line(self) -> Line:
        """Return how far a run is that measures; nothing without one."""
        if self._peaks is not None:
            waits_for = self._peaks.waits_for
            told = f"wait for {waits_for}" if waits_for else f"are measured, for about {duration(self._peaks.SECONDS)}"
            return line(Span(f" The peaks of this host {told}.", "warn"))
        if self._run is None or not self._run.measures:
            return ()
        share = "" if self._run.share is None else f", {percent(self._run.share)} done"
        return line(Span(f" A run measures{share}; its end brings the analysis up to date.", "warn"))

    def take_new_results(self) -> None:
        """Analyse the model; while a run measures once, and again only if the user asks for it."""
        self._is_outdated = True
        if self.job is None and not (self._measuring and self._has_looked):
            self.look()

    @on(WhatIfsPanel.Settled, "#what-ifs")
    def _show_change(self) -> None:
        self._change.show(self._what_ifs.selected, self.job, self._failures)

    @on(WhatIfsPanel.Opened, "#what-ifs")
    def _what_if_opened(self) -> None:
        self.go_to(self._change)

    def look(self) -> None:
        if self.says_under_way():
            return
        self._is_outdated = self._measuring
        self._has_looked = True
        if self._document is None:
            self._say("Reading the model as each runtime has it.", "muted")
        self.run_in_thread(self._analyse, "analysis", self._analysed, self._say)

    def action_show_roofline(self) -> None:
        document = self._document
        if document is not None and document.roofline is not None:
            self.app.push_screen(RooflineScreen(self._model, document.roofline))
        else:
            lacks_peaks = document is not None and document.found.lacks_peaks
            measures = f": {key('analysis.measure')} measures them" if lacks_peaks else ""
            self.notify(f"The peaks of the system are not known for this number of threads and precision{measures}.")

    def action_show_kernels(self) -> None:
        def keep(found: Sequence[TimedKernel] | None) -> None:
            self._kernels = found or ()

        if not self.says_under_way() and self._document is not None:
            self.app.push_screen(KernelsScreen(self._document.found, self._data, self._kernels), keep)

    # Proofs

    def action_prove(self) -> None:
        chosen = self._what_ifs.chosen
        possible = tuple(it.what_if for it in chosen if not it.is_bound)
        if chosen and not possible:
            self.notify(f"No runtime can do this: {names_of([it.words for it in chosen])}.")
        elif not possible:
            self.notify("There is no what-if to prove.")
        elif not self.says_under_way() and self._document is not None:
            new = partial(proof_job, self._document.found, self._spec.source, possible, self._spec.shapes, self._data)
            self.run_in_thread(new, "proof", self.follow, partial(self.notify, severity="warning"))

    def follow(self, job: ProofJob | None) -> None:
        if job is not None and self.job is None:
            for each in job.order.what_ifs:
                self._failures.pop(each.id, None)
        super().follow(job)

    def job_changed(self) -> None:
        while self.job is not None and self.job.news:
            done = self.job.news.popleft()
            if done.gain is None:
                self._failures[done.what_if] = done.failure
            elif self._document is not None:
                self._document = self._document.with_proof(done.what_if, done.gain)
                self._what_ifs.show(self._document.changes)
                self.head_changed()
        self._what_ifs.show_proof(self.job)
        self._show_change()
        self.refresh_bindings()

    def job_ended(self, job: ProofJob) -> None:
        self.job_changed()
        if self._is_outdated:
            self.take_new_results()
        job.require_proof()

    # What the what-ifs lack

    def action_measure(self) -> None:
        if self.says_under_way():
            return
        if self._measuring:
            measuring = "The peaks are measured" if self._peaks is not None else "A run is measuring"
            self.notify(f"{measuring}: what is missing can be measured once that has ended.")
        elif self._document is not None:
            plan = partial(plan_here, self._document.found, self._data, self._spec.shapes)
            self.run_in_thread(plan, "plan", self._planned, self.notify)

    def _planned(self, plan: MeasuringPlan) -> None:
        def start() -> str:
            # Runs have their turns in this order.
            first, *_ = [jobs.start_run(request, self._data) for request in plan.requests]
            return first

        def measure(_: bool) -> None:
            # All at once: each process waits in the line of this host, also after this one ends.
            if plan.peaks_threads is not None:
                peaks = peaks_job(plan.peaks_threads, self._data)
                self.run_worker(self._measure_peaks(peaks), group="peaks", exit_on_error=False)
            if plan.requests:
                self.run_in_thread(start, "start run", lambda run: self.post_message(messages.RunBegun(run)))

        if plan.is_empty:
            self.notify("The what-ifs lack nothing that this host can measure.")
        else:
            self.ask(MeasureScreen(plan), measure)

    async def _measure_peaks(self, peaks: PeaksJob) -> None:
        self._peaks = peaks
        self.head_changed()
        await peaks.follow(self.head_changed)
        self._peaks = None
        if peaks.failure:
            self.notify(peaks.failure, severity="warning")
        self.head_changed()
        self.take_new_results()

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


def analyse(session: WorkbenchSession, spec: ModelSpec, choices: Choices, config: Config) -> AnalysisDocument:
    """Analyse a model from stored results; raise a UserError where that is not possible."""
    with open_estimator(options_of(spec, choices, config), session.data) as estimator:
        document = AnalysisDocument(next(iter(Analyser(estimator).analyses([spec.source]))))
    document.prepare()
    return document
