"""The screen of the analysis of a model: bounds, what-ifs, a change, and the layers, with its boxes."""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, ClassVar

from textual import on

from dlbricks_tui.api import analysing, jobs
from dlbricks_tui.api.analyses import Analysis, ModelKernel
from dlbricks_tui.api.analysing import Analyser, MeasuringPlan, lacks_in_words, plan_here, proof_job
from dlbricks_tui.api.followed_jobs import PeaksJob, ProofJob, peaks_job
from dlbricks_tui.api.measuring import measured_by_settings
from dlbricks_tui.api.open_models import Choices, ComparableRow, ModelSpec
from dlbricks_tui.api.session import Asked, WorkbenchSession, options_of
from dlbricks_tui.config.config import Config
from dlbricks_tui.documents.analysis import (
    AnalysisDocument,
    fastest_words,
    kernels_table,
    layer_columns,
    layer_kernels_table,
)
from dlbricks_tui.documents.lines import ELLIPSIS, Line, Span, line
from dlbricks_tui.documents.parts import BLANK_LINE, Column, Fact, Part, Sentence
from dlbricks_tui.documents.what_ifs import (
    NO_WHAT_IFS,
    ShownWhatIf,
    change_facts,
    change_reasons,
    gain_with_interval,
    gains_picture,
    gains_sentence,
    what_if_columns,
)
from dlbricks_tui.errors import UserError
from dlbricks_tui.tui import messages
from dlbricks_tui.tui.dialogs.dialog import ConfirmingScreen, Dialog, TextDialog
from dlbricks_tui.tui.dialogs.notices import ask_which_marked
from dlbricks_tui.tui.keys import scopes
from dlbricks_tui.tui.keys.keymap import Hint, key
from dlbricks_tui.tui.widgets.panel import Copyable, DocumentPanel, Orders, TablePanel, counts_text
from dlbricks_tui.tui.widgets.rows import WHAT_IF
from dlbricks_tui.tui.widgets.screens import WorkScreen
from dlbricks_tui.tui.widgets.text import PictureView
from dlbricks_tui.wording.answers import common_beginning
from dlbricks_tui.wording.numbers import counted, duration, measured_ago, names_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from dlbricks_tui.analysis.bounds import GroupTimes
    from dlbricks_tui.documents.pictures import Plot
    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.runtime.process import Worker


class BoundsPanel(DocumentPanel):
    scope = scopes.BOUNDS
    TITLE = "Bounds"
    PICTURED = True
    NOTHING_TO_COPY = "This line has no command."
    ABOUT = (
        "Best measured is the sum over all layers of the least time of any execution that was measured here, without "
        "conversions. The roofline is the least time by arithmetic and bytes over the peaks of this system. "
        "The parts of the gap add up to the latency minus the best. {bounds.copy} copies a command that measures what "
        "is missing."
    )

    def show(self, document: AnalysisDocument) -> None:
        self.show_picture(document.gap_picture)
        # What can be done comes first.
        hint = Hint("On the workbench, {workbench.start_run} runs what is missing.", "muted")
        lacking = [Copyable((hint,))] * (document.found.best is None)
        for lack in document.found.missing:
            told = Sentence(f"Missing: {lack.what}", "warn"), Sentence(f"  {lack.command}", "strong")
            lacking.append(Copyable(told, lack.command))
        self.show_groups([*lacking, Copyable((*[BLANK_LINE] * bool(lacking), *_found_parts(document)))])


def _found_parts(document: AnalysisDocument) -> Iterator[Part]:
    yield from document.latencies()
    if document.found.lacks_peaks:
        yield Hint("{analysis.measure} measures the peaks.", "muted")
    if document.found.gap is not None:
        yield BLANK_LINE
        yield from document.gap()


class LayersPanel(TablePanel["GroupTimes"]):
    scope = scopes.LAYERS
    TITLE = "Layers"
    PICTURED = True
    SEARCH_HINT = "layer or execution"
    PLACEHOLDER = (Hint("No layers to compare: not all of them were measured."),)
    NOUN = "layer"
    IDENTITY = attrgetter("layers")
    ABOUT = (
        "Runtimes fuse different layers, so the times are those of the smallest groups that all of them compute "
        "together. Slower is how much longer the model's own execution takes than the fastest one. "
        "'mxnet fused on 2' is MXNet with fused layers on two threads."
    )
    ORDERS: ClassVar[Orders] = {
        "longest first": lambda it: -it.latency_ps,
        "most to gain first": lambda it: it.best_ps - it.latency_ps,
    }

    def __init__(self) -> None:
        super().__init__()
        # The beginning of all names, which the title shows once.
        self._common = ""

    def columns(self) -> tuple[Column[GroupTimes], ...]:
        return layer_columns(self._common)

    def copied_columns(self) -> tuple[Column[GroupTimes], ...]:
        # A copy has no title that says the beginning of the names.
        return layer_columns("")

    def show(self, groups: Sequence[GroupTimes]) -> None:
        self._common = common_beginning([name for it in groups for name in it.layers])
        self.show_placeholder(*self.PLACEHOLDER)
        self.show_items(groups)

    def searched(self, item: GroupTimes) -> str:
        return f"{' '.join(item.layers)} {fastest_words(item)}"

    def show_counts(self) -> None:
        common = f" of {self._common}{ELLIPSIS}" if self._common else ""
        self.show_title(f"{common} {counts_text(len(self.found), len(self.items))}, {self.order}")


class WhatIfsPanel(TablePanel["ShownWhatIf"]):
    scope = scopes.WHAT_IFS
    TITLE = "What-ifs"
    PICTURED = True
    SEARCH_HINT = "kind, name, setting or layer"
    NOUN = "what-if"
    IDENTITY = attrgetter("what_if.id")
    COPIES = attrgetter("what_if.how")
    NOTHING_TO_COPY = "There is no what-if to copy."
    ABOUT = (
        "Changes of the way in which the model is executed. The gain is the share of the latency that a change is "
        "predicted to save, with its 95 % interval; 'no gain' is one that costs time. For batches it is that of one "
        "item. Proved is the gain that was measured when the change was carried out; 'cannot': no runtime can do it."
    )
    ORDERS: ClassVar[Orders] = {"by kind": lambda _: 0, "by gain": lambda it: -it.what_if.gain.value}

    def __init__(self) -> None:
        super().__init__()
        self._proof: ProofJob | None = None

    def columns(self) -> tuple[Column[ShownWhatIf], ...]:
        proof = self._proof
        under_way = {} if proof is None else {proof.now: "waits" if proof.waits_for else "running"}
        return what_if_columns(self.items, under_way)

    def show(self, rows: Sequence[ShownWhatIf]) -> None:
        self.show_placeholder(
            line(NO_WHAT_IFS),
            Hint("{analysis.measure} measures others: threads, kernels, runtimes, batch sizes.", "muted"),
        )
        self.show_items(rows)
        self.show_picture(gains_picture(rows))

    def show_proof(self, proof: ProofJob | None) -> None:
        self._proof = proof
        self.columns_changed()

    def searched(self, item: ShownWhatIf) -> str:
        found = item.what_if
        return f"{found.id} {item.words} {found.how} {' '.join(found.layers)}"

    def comparable(self, item: ShownWhatIf) -> ComparableRow:
        return ComparableRow(WHAT_IF, item.what_if.id, item.words, item.what_if.id)


class ChangePanel(DocumentPanel):
    scope = scopes.CHANGE
    TITLE = "The change"
    PLACEHOLDER = (Hint("Select a what-if to read how it is done.", "muted"),)
    NOTHING_TO_COPY = "Select a what-if first."
    ABOUT = "The selected what-if. {change.copy} copies the command or setting that makes the change."

    def show(self, row: ShownWhatIf | None, proof: ProofJob | None, failures: Mapping[str, str]) -> None:
        """Show a what-if, how far its proof is, or why it failed: `failures` are the reasons by the ids of what-ifs."""
        self.show_title(f": {row.words}" if row else "")
        if row is None:
            self.show_groups(())
        else:
            proof = proof if proof and proof.now == row.what_if.id else None
            parts = _change_parts(row, proof, failures.get(row.what_if.id, ""))
            self.show_groups([Copyable(tuple(parts), row.what_if.how)], row.what_if.id)


def _change_parts(row: ShownWhatIf, proof: ProofJob | None, failure: str) -> Iterator[Part]:
    yield from change_facts(row)
    if row.proof is None and not row.is_bound and proof is None and not failure:
        yield Hint("proved     not yet: {analysis.prove} carries it out", "muted")
    if failure:
        yield Fact("failed", failure, style="bad")
    if proof is not None:
        yield Fact("proving", _how_far(proof), f" {proof.place}" if proof.place else "", "warn")
        yield Hint("           {analysis.cancel} cancels it", "muted")
    yield from change_reasons(row)


def _how_far(proof: ProofJob) -> str:
    if proof.waits_for:
        return f"waits for {proof.waits_for}"
    done = proof.rounds
    if done is None:
        return "loading the model twice, before and after the change"
    left = "" if done.seconds_left is None else f", about {duration(done.seconds_left)} left"
    return f"{counted(done.rounds, 'round')}, {gain_with_interval(done.gain)} so far{left}"


class MeasureScreen(ConfirmingScreen):
    scope = scopes.MEASURE
    MEASURES = True
    HEADING = "Measure what is missing"
    ABOUT = (
        "The executions are measured in runs that you can watch, pause and cancel like any other. The peaks are the "
        "most arithmetic and the highest bandwidths that this host reaches; the roofline needs them."
    )

    def __init__(self, plan: MeasuringPlan) -> None:
        some = counted(len(plan.lacks), "execution")
        lacking = f"{plan.model} was not measured in {some}" if plan.lacks else "The peaks of this host are not known"
        parts: list[Part] = [Sentence(f"{lacking}; that takes about {duration(plan.seconds)}."), BLANK_LINE]
        parts += [Fact(kind, words) for kind, words in lacks_in_words(plan)]
        if plan.requests:
            runs = f"{counted(len(plan.requests), 'run')}, one after the other while this screen is open."
            parts += [BLANK_LINE, Sentence(runs, "muted")]
        super().__init__(*parts)


class RooflineScreen(Dialog[None]):
    """Draws the layers as letters under the peaks, on logarithmic axes, as large as the terminal is."""

    CSS = "RooflineScreen Box { width: 100%; max-width: 160; height: 100%; max-height: 100%; padding: 0 1; }"
    ABOUT = (
        "Each letter is a layer: to the right the more operations it computes for a byte, to the top the faster it "
        "computes. Far below the roofs there is time to save."
    )

    def __init__(self, model: str, picture: Plot) -> None:
        view = PictureView()
        view.show(picture)
        super().__init__(view, heading=f"Roofline of {model}")


class KernelsScreen(TextDialog["Sequence[ModelKernel]"]):
    """Asks the runtime for the kernels in a thread, and returns them; closing the box ends the process of the runtime.

    Kernels that are known already are shown at once.
    """

    CSS = "KernelsScreen Box.-tall { width: 100%; max-width: 140; height: 100%; max-height: 100%; padding: 0 2; }"
    ABOUT = (
        "The kernels by which the runtime computes the layers, those that take most first, and why it refused others "
        "that it tries first. A reason is derived if it follows from the shapes and the runtime does not tell it. "
        "Conversions change layouts within a layer. The runtime loads the model once more for it."
    )
    BOX_CLASSES = "-tall"

    def __init__(self, found: Analysis, data: DataFolder, known: Sequence[ModelKernel]) -> None:
        super().__init__(heading=f"Kernels of {found.source.name}")
        self._found = found
        self._data = data
        self._kernels = known
        self._refusal = self._waits_for = ""
        self._worker: Worker | None = None
        self._is_closed = False

    def on_mount(self) -> None:
        def wait(ahead: str) -> None:
            self.app.call_from_thread(self._tell, waits_for=ahead)

        def check() -> None:
            # The waiting ends with the box.
            if self._is_closed:
                raise UserError("the box is closed")

        def started(worker: Worker) -> None:
            # Kept to end it with the box.
            self._worker = worker
            if self._is_closed:
                worker.interrupt()

        if not self._kernels:
            read = partial(analysing.kernels_of, self._found, self._data, wait, check, started)
            self.run_in_thread(read, "kernels", self._tell, lambda reason: self._tell(refusal=reason))

    def on_unmount(self) -> None:
        self._is_closed = True
        if self._worker is not None:
            self._worker.interrupt()

    def action_close(self) -> None:
        self.dismiss(self._kernels)

    def parts(self) -> Iterator[Part]:
        if self._refusal:
            yield Sentence(self._refusal, "warn")
        elif not self._kernels:
            framework = self._found.baseline.execution.runtime.traits.title
            yield Sentence(f"{framework} loads the model, and tells the kernels that it chooses.")
            if self._waits_for:
                yield Sentence(f"It waits for {self._waits_for}.")
            yield Hint("{dialog.close} cancels it.", "muted")
        else:
            yield from (kernels_table(self._kernels), BLANK_LINE, layer_kernels_table(self._kernels))

    def _tell(self, kernels: Sequence[ModelKernel] = (), *, refusal: str = "", waits_for: str = "") -> None:
        self._kernels, self._refusal, self._waits_for = kernels, refusal, waits_for
        self.parts_changed()


class AnalysisScreen(WorkScreen[None, ProofJob]):
    """Analyses the open model in a thread, and proves what-ifs in a process."""

    scope = scopes.ANALYSIS
    WRAPS_STATE = True
    WANTS_NEW_RESULTS = True
    WAITS_FOR_RUN = True
    ABOUT = (
        "How fast the open model could be, from everything that was measured of it on the system of the estimate, and "
        "what is worth changing: parallel layers, kernels, runtimes, fusion, precision, threads and batch size. "
        "{analysis.prove} carries out the selected change and measures its gain, in a minute at most; "
        "{analysis.measure} measures what the what-ifs and the roofline lack."
    )
    WORK = "The proof"
    UNDER_WAY = "The proof goes on ({job.title})"
    CANCELLED = "The proof is cancelled; those before it are kept."

    def __init__(self, session: WorkbenchSession, asked: Callable[[], Asked]) -> None:
        self._bounds = BoundsPanel()
        self._what_ifs = WhatIfsPanel()
        self._change = ChangePanel()
        self._layers = LayersPanel()
        super().__init__(self._bounds, self._what_ifs, self._change, self._layers)
        self._data = session.data
        self._analyse = lambda: analyse(session, *asked())
        self._asked = asked
        self._model = asked().spec.source.name
        self._document: AnalysisDocument | None = None
        # What is said in its place.
        self._said = Hint("")
        # The reasons why proofs failed, by the ids of the what-ifs.
        self._failures: dict[str, str] = {}
        # The kernels of the layers, once the runtime has told them.
        self._kernels: Sequence[ModelKernel] = ()
        # The peaks of this host while they are measured.
        self._peaks: PeaksJob | None = None
        # True if there are results that the analysis does not have yet.
        self._is_outdated = False

    def on_mount(self) -> None:
        self.find_job(partial(ProofJob.begun, self._data, self._model))

    def take_new_results(self) -> None:
        """Analyse the model, unless a proof or the measurement of the peaks would be disturbed: then at its end."""
        self._is_outdated = True
        if self.job is None and self._peaks is None:
            self.look()

    @on(WhatIfsPanel.Settled, "WhatIfsPanel")
    def _show_change(self) -> None:
        self._change.show(self._what_ifs.selected, self.job, self._failures)

    def look(self) -> None:
        if self.says_under_way():
            return
        self._is_outdated = False
        if self._document is None:
            self._say("Reading the model as each runtime has it.", "muted")
        self.run_in_thread(self._analyse, "analysis", self._analysed, self._say)

    def action_show_roofline(self) -> None:
        if (document := self._document) is None:
            return
        if document.roofline is not None:
            self.app.push_screen(RooflineScreen(self._model, document.roofline))
        else:
            measures = f": {key('analysis.measure')} measures them" if document.found.lacks_peaks else ""
            self.notify(f"The peaks of the system are not known for this number of threads and precision{measures}.")

    def action_show_kernels(self) -> None:
        def keep(found: Sequence[ModelKernel] | None) -> None:
            self._kernels = found or ()

        if not self.says_under_way() and self._document is not None:
            self.app.push_screen(KernelsScreen(self._document.found, self._data, self._kernels), keep)

    def controls(self) -> Mapping[str, bool]:
        answering = "prove", "measure", "show_roofline", "show_kernels"
        return {**super().controls(), **dict.fromkeys(answering, self._document is not None)}

    # Proofs

    def action_prove(self) -> None:
        chosen = self._what_ifs.chosen
        ask_which_marked(self.app, "what-if", [it for it in chosen if it in self._what_ifs.found], chosen, self._prove)

    def _prove(self, chosen: Sequence[ShownWhatIf]) -> None:
        possible = tuple(it.what_if for it in chosen if not it.is_bound)
        if chosen and not possible:
            self.notify(f"No runtime can do this: {names_of([it.words for it in chosen])}.")
        elif not possible:
            self.notify("There is no what-if to prove.")
        elif not self.says_under_way() and self._document is not None:
            found = self._document.found
            new = partial(proof_job, found, found.source, possible, self._asked().spec.shapes, self._data)
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
        if self._waits or self._peaks is not None:
            measuring = "The peaks are measured" if self._peaks is not None else "A run is measuring"
            self.notify(f"{measuring}: what is missing can be measured once that has ended.")
        elif self._document is not None:
            asked = self._asked()
            options = measured_by_settings(asked.config, inputs=asked.spec.shapes)
            plan = partial(plan_here, self._document.found, self._data, options)
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
        self._layers.show(found.found.groups)
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
        if self._peaks is not None:
            waits_for = self._peaks.waits_for
            told = f"wait for {waits_for}" if waits_for else f"are measured, for about {duration(self._peaks.SECONDS)}"
            return line(Span(f" The peaks of this host {told}.", "warn"))
        if self._document is None:
            return ()
        about = [self._document.way, measured_ago([self._document.found.baseline.found])]
        return line(Span(f" {', '.join(filter(None, about))}", "muted"))


def analyse(session: WorkbenchSession, spec: ModelSpec, choices: Choices, config: Config) -> AnalysisDocument:
    """Analyse a model from stored results; raise a UserError where that is not possible."""
    with session.open_estimator(options_of(spec, choices, config)) as estimator:
        document = AnalysisDocument(next(iter(Analyser(estimator).analyses([spec.source]))))
    document.prepare()
    return document
