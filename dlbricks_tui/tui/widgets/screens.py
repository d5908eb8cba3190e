"""The bases of all screens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from textual import events, on
from textual.await_complete import AwaitComplete
from textual.containers import Container
from textual.keys import key_to_character
from textual.screen import Screen
from textual.worker import Worker, WorkerState, get_current_worker

from dlbricks_tui.api.open_models import setting_named
from dlbricks_tui.documents.lines import Line, Span, line, width_of, wrapped_lines
from dlbricks_tui.errors import UserError
from dlbricks_tui.recorded_host import NOTHING_IS_MEASURED, recorded_host
from dlbricks_tui.tui.keys.keymap import HelpPlace, key
from dlbricks_tui.tui.keys.scopes import ACTIONS
from dlbricks_tui.tui.messages import Failed, NewResults, RunStateNeeded
from dlbricks_tui.tui.run.status import StatusLine
from dlbricks_tui.tui.saving import show_message
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.widgets.text import LineBar, TextLines, cut_lines
from dlbricks_tui.wording.numbers import capitalised

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from textual.app import App, ComposeResult
    from textual.binding import BindingsMap
    from textual.dom import DOMNode
    from textual.message_pump import MessagePump

    from dlbricks_tui.api.followed_jobs import FollowedJob
    from dlbricks_tui.api.followed_runs import RunSnapshot
    from dlbricks_tui.host.queue import Place
    from dlbricks_tui.tui.dialogs.dialog import ConfirmingScreen

Result = TypeVar("Result")
Found = TypeVar("Found")
SECONDS_TO_DRAW = 1.0
# Ages are told in minutes.
SECONDS_BETWEEN_AGES = 60.0


def after_picture(pump: MessagePump, work: Callable[[], object]) -> None:
    """Do work once that would delay the next picture.

    Textual leaves it to the screen in front, and drops it if that is closed before it is drawn: then a timer does it.
    """
    waiting = [work]

    def do() -> None:
        if waiting:
            waiting.pop()()

    pump.call_after_refresh(do)
    pump.set_timer(SECONDS_TO_DRAW, do)


class ThreadedScreen(HelpPlace, Screen[Result], Generic[Result], inherit_bindings=False):
    """A screen that runs slow work in threads and reports its errors."""

    # True if the screen wants `NewResults` messages.
    WANTS_NEW_RESULTS: ClassVar[bool] = False
    # True if reading them takes long: the screen gets the message once the run that measures has ended.
    WAITS_FOR_RUN: ClassVar[bool] = False
    # True for a box that asks before something is measured.
    MEASURES: ClassVar[bool] = False

    def __init__(self) -> None:
        super().__init__()
        # True if there are results that the screen was not told of; a new one has just read the store.
        self.lacks_results = False
        # The newest worker of each group.
        self._newest: dict[str, Worker[None]] = {}

    @property
    def _binding_chain(self) -> list[tuple[DOMNode, BindingsMap]]:
        """The chain of Textual, where a field also keeps letters that the keymap assigns to actions.

        Textual removes the keys of a field from the outer bindings before it applies the keymap.
        """
        chain = super()._binding_chain
        for place, (_, found) in enumerate(chain):
            for pressed in list(found.key_to_bindings):
                if any(inner.check_consume_key(pressed, key_to_character(pressed)) for inner, _ in chain[:place]):
                    del found.key_to_bindings[pressed]
        return chain

    def run_in_thread(
        self,
        work: Callable[[], Found],
        group: str = "",
        then: Callable[[Found], object] | None = None,
        refused: Callable[[str], object] | None = None,
    ) -> None:
        """Run the work in a thread, then call `then` with its result in the thread of the screen.

        Work of a group replaces earlier work of that group, whose results are dropped. `refused` takes the reason of a
        UserError; without it a box shows the error.
        """

        def found() -> Iterator[Found]:
            yield work()

        self.run_steps_in_thread(found, group, then, refused)

    def run_steps_in_thread(
        self,
        steps: Callable[[], Iterable[Found]],
        group: str,
        then: Callable[[Found], object] | None,
        refused: Callable[[str], object] | None = None,
    ) -> None:
        """Run work of several steps in a thread, as `run_in_thread` does: `then` gets what each of them yields."""

        def work() -> None:
            worker = get_current_worker()
            try:
                for found in steps():
                    if worker.is_cancelled:
                        return
                    if then is not None:
                        self.call_later(self._deliver, worker, then, found)
            except UserError as error:
                if refused is None:
                    raise
                self.call_later(self._deliver, worker, refused, str(error))

        worker = self.run_worker(
            work, group=group or "default", exclusive=bool(group), thread=True, exit_on_error=False
        )
        if group:
            self._newest[group] = worker

    def _deliver(self, worker: Worker[None], then: Callable[[Any], object], found: object) -> object:
        return then(found) if self._newest.get(worker.group, worker) is worker else None

    def is_working(self, group: str) -> bool:
        """Return whether work of a group is in progress."""
        newest = self._newest.get(group)
        return newest is not None and not newest.is_finished

    def dismiss(self, result: Result | None = None) -> AwaitComplete:
        """Close this screen; Textual would close the one in front if a key comes once more before it is gone."""
        return super().dismiss(result) if self.app.screen is self else AwaitComplete()

    def ask(
        self, box: ThreadedScreen[Found], then: Callable[[Found], object], closed: Callable[[], object] = lambda: None
    ) -> None:
        ask(self.app, box, then, closed)

    def show_run(self, run: RunSnapshot) -> None:
        """Take the state of the followed run; by default do nothing."""

    def config_changed(self) -> None:
        """Answer for the new settings of the config."""
        if self.WANTS_NEW_RESULTS:
            self.post_message(NewResults())

    def show_queue(self, places: tuple[Place, ...]) -> None:
        """Take the line of work on this host; by default do nothing."""

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        error = event.worker.error
        if event.state is WorkerState.ERROR and error is not None:
            self.post_message(Failed(error))


def ask(
    app: App[Any],
    box: ThreadedScreen[Found],
    then: Callable[[Found], object],
    closed: Callable[[], object] = lambda: None,
) -> None:
    """Open a box, and call `then` with its result, or `closed` without one; a demonstration opens none to measure."""

    def answered(result: Found | None) -> Any:
        return closed() if result is None else then(result)

    if box.MEASURES and recorded_host() is not None:
        app.notify(f"{capitalised(NOTHING_IS_MEASURED)}.")
    else:
        app.push_screen(box, answered)


def no_other_value(setting: str) -> str:
    """Return what is said where a key leads to no other value of a setting."""
    return f"The {setting} is {setting_named(setting).kind.allowed}."


# The class of a screen that shows one panel at a time, and of one whose user wants that.
ONE_PANEL, ZOOMED = "-narrow", "-zoomed"
WIDE = "-wide"
# The smallest width in columns of each layout; the style sheets define the layouts.
LAYOUTS = [(0, ONE_PANEL), (112, "-medium"), (160, WIDE)]


def layout_of(width: int) -> str:
    """Return the layout of a terminal with so many columns."""
    return next(layout for least, layout in reversed(LAYOUTS) if width >= least)


class PanelledScreen(ThreadedScreen[Result], Generic[Result]):
    """A screen with panels; a narrow terminal shows only the one with the class `-current`, at first the first."""

    AUTO_FOCUS = "Panel RowsView"

    def on_mount(self) -> None:
        self.make_current(self.query(Panel).first())
        # The actions of the screen lead to its panels in their order.
        ways = (it.id for it in (self.scope.actions if self.scope else ()) if it.method.startswith("go_to_"))
        for panel, way in zip(self.query(Panel), ways, strict=False):
            panel.reached_by = way
            panel.keys_changed()
        self.set_interval(SECONDS_BETWEEN_AGES, self.ages_changed)

    @property
    def shows_one_panel(self) -> bool:
        return self.has_class(ONE_PANEL) or self.has_class(ZOOMED)

    def zoom(self) -> None:
        """Show only the current panel, or all of them again."""
        if self.has_class(ONE_PANEL) and not self.has_class(ZOOMED):
            self.notify("A terminal of this width shows one panel at a time.")
        else:
            self.toggle_class(ZOOMED)

    def ages_changed(self) -> None:
        """Show how old the results are by now; by default do nothing."""

    def go_to(self, panel: Panel) -> None:
        # A hidden panel cannot be focused.
        self.make_current(panel)
        panel.take_focus()

    def make_current(self, current: Panel) -> None:
        """Make this panel the one that a narrow terminal shows."""
        for panel in self.query(Panel):
            panel.set_class(panel is current, "-current")

    def on_screen_resume(self) -> None:
        # The keymap may have changed while another screen was shown.
        for panel in self.query(Panel):
            panel.keys_changed()
        self.post_message(RunStateNeeded())

    def compare_marked(self) -> bool:
        """Compare the marked rows; False if the screen has none of its own."""
        return False

    def action_go_to(self, action: str) -> None:
        self.go_to(next(panel for panel in self.query(Panel) if action == panel.reached_by))

    def action_leave(self) -> None:
        self.dismiss(None)

    def action_step_panel(self, step: int) -> None:
        panels = list(self.query(Panel))
        here = next((index for index, panel in enumerate(panels) if panel.has_class("-current")), 0)
        self.go_to(panels[(here + step) % len(panels)])

    @on(events.DescendantFocus)
    def _focus_moved(self, event: events.DescendantFocus) -> None:
        panel = next((each for each in event.widget.ancestors_with_self if isinstance(each, Panel)), None)
        if panel is not None:
            self.make_current(panel)


# The lines above the panels, and those of the panels, the status and the keys, on a low terminal.
_LEAST_HEAD, _LEAST_BELOW = 4, 8
# What a screen says while its results have to wait.
NOT_YET = "A run measures now: what it stores is shown here once it has ended."


class AnswerScreen(PanelledScreen[Result], Generic[Result]):
    """A screen with a question and its answer above the panels, the first of which a narrow terminal shows first."""

    # True if the state may take several lines; else the panels stay where they are while it changes.
    WRAPS_STATE: ClassVar[bool] = False

    def __init__(self, *panels: Panel) -> None:
        super().__init__()
        self._panels = panels
        self._waits = False
        self._head = TextLines(self.head_lines, classes="answer-head")

    def compose(self) -> ComposeResult:
        yield self._head
        yield Container(*self._panels, classes="panels")
        yield StatusLine()
        yield KeyBar()

    def question(self) -> str:
        """Return the question, which names the model."""
        raise NotImplementedError

    def answer(self) -> Iterable[Line]:
        """Return the answer in one line; several only where one would hide what matters."""
        return ()

    def state(self) -> Line:
        """Return what is in progress, or what the answer is about."""
        return ()

    def look(self) -> None:
        """Read what the screen shows, in a thread."""
        raise NotImplementedError

    def take_new_results(self) -> None:
        """Show results that were stored since the last look."""
        self.look()

    def on_mount(self) -> None:
        self.look()

    @on(NewResults)
    def _new_results(self) -> None:
        self.take_new_results()

    def action_look_again(self) -> None:
        self.look()

    def show_run(self, run: RunSnapshot) -> None:
        # New results have to wait for its end.
        if self.WAITS_FOR_RUN and run.measures is not self._waits:
            self._waits = run.measures
            self.head_changed()

    def head_changed(self) -> None:
        """Show the question, the answer and the keys anew."""
        self._head.refresh(layout=True)
        self.refresh_bindings()

    def ages_changed(self) -> None:
        self.head_changed()

    def head_lines(self, width: int) -> tuple[Line, ...]:
        """Return the lines above the panels: the question, the answer, and the state."""
        asked = line(Span(f" {self.question()}", "heading"))
        below = line(Span(f" {NOT_YET}", "warn")) if self._waits else self.state()
        whole = [below] if below and self.WRAPS_STATE else []
        question = tuple(wrapped_lines([asked], width))
        told = (*wrapped_lines([*self.answer(), *whole], width), *([below] if below and not whole else []))
        most = max(_LEAST_HEAD, self.size.height - _LEAST_BELOW)
        # A low terminal shows the answer and some rows.
        return (*question, *told) if len(question) + len(told) <= most else cut_lines(told or question, most)


class KeyBar(LineBar):
    """The keys that work now, those of the focused panel at the left, as many as fit; the help lists all of them."""

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._bindings_updated)

    def lines(self, width: int) -> tuple[Line, ...]:
        shown = {
            active.binding.id
            for active in self.screen.active_bindings.values()
            if active.enabled and active.binding.show
        }
        offered = [action for action in ACTIONS if action.id in shown]
        kept: dict[str, Line] = {}
        room = width
        for action in sorted(offered, key=lambda it: not it.first):
            spans = (Span(f" {key(action.id)}", "accent"), Span(f" {action.label} ", "muted"))
            if width_of(spans) <= room:
                kept[action.id] = spans
                room -= width_of(spans)
        return (tuple(span for action in offered for span in kept.get(action.id, ())),)

    def _bindings_updated(self, screen: Screen[object]) -> None:
        if self.is_attached and self.app.screen is self.screen:
            self.refresh()


Job = TypeVar("Job", bound="FollowedJob[Any]")


class WorkScreen(AnswerScreen[Result], Generic[Result, Job]):
    """A screen of work in a process of its own, which goes on when the user leaves and is shown again later."""

    # The word for the work.
    WORK: ClassVar[str] = "The measurement"
    # What is said: that there is such work already, and that it is cancelled.
    UNDER_WAY: ClassVar[str] = ""
    CANCELLED: ClassVar[str] = ""
    # The box that asks before work is cancelled.
    ASKS_TO_CANCEL: ClassVar[type[ConfirmingScreen] | None] = None
    # The work in progress, and why the last one failed.
    job: Job | None = None
    failure = ""

    def controls(self) -> Mapping[str, bool]:
        """Return which of the actions that control the work apply now."""
        return {"cancel": self.job is not None}

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self.controls().get(action, super().check_action(action, parameters))

    def find_job(self, begun: Callable[[], Job | None]) -> None:
        """Follow the job that was begun before, if there is one."""
        self.run_in_thread(begun, "begun", self.follow)

    def follow(self, job: Job | None) -> None:
        """Follow a job to its end, unless there is one already."""
        if job is not None and self.job is None:
            self.job, self.failure = job, ""
            self.job_changed()
            self.run_worker(self._follow(job), group="job", exit_on_error=False)

    async def _follow(self, job: Job) -> None:
        try:
            await job.follow(self.job_changed)
        finally:
            self.job, self.failure = None, job.failure
            if job.cancelled:
                self.notify(self.CANCELLED.format(job=job))
            # A user who leaves ends no job: looking for its results would disturb it.
            if not get_current_worker().is_cancelled:
                self.job_ended(job)

    def job_changed(self) -> None:
        """Show how far the work is."""
        self.head_changed()

    def job_ended(self, job: Job) -> None:
        """Show what the work has found."""

    def says_under_way(self) -> bool:
        """Say it if there is such work already."""
        if self.job is not None:
            cancel = key(f"{self.scope.name}.cancel") if self.scope else ""
            self.notify(f"{self.UNDER_WAY.format(job=self.job)}: {cancel} cancels it.")
        return self.job is not None

    def action_cancel(self) -> None:
        def cancel(_: bool) -> None:
            if self.job is not None:
                self.job.cancel()
                self.head_changed()

        if self.ASKS_TO_CANCEL is None:
            cancel(True)
        else:
            self.ask(self.ASKS_TO_CANCEL(), cancel)

    def action_leave(self) -> None:
        self.leave_with(None)

    @property
    def goes_on(self) -> str:
        """The sentence that is shown when the user leaves the work."""
        return f"{self.WORK} goes on in the background; this screen shows it again."

    def leave_with(self, result: Result | None) -> None:
        if self.job is not None:
            show_message(self.app, self.goes_on)
        self.dismiss(result)
