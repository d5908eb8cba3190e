"""The settings of a run, and the box that asks for them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual.message import Message

from dlbricks_tui.bricks.cutting import Cut
from dlbricks_tui.config.config import Config
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.stopping import Adaptive
from dlbricks_tui.models.graph import Level, Shape
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.runs.errors import RunError
from dlbricks_tui.runs.request import CalibrationPolicy, InputShape, RunRequest, chosen, usual_method
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.tui.choices import Choices, next_of, with_own
from dlbricks_tui.tui.dialogs.dialog import Box, Dialog
from dlbricks_tui.tui.lines import BLANK, Line, Span, column, line, wrapped
from dlbricks_tui.tui.open_model import ModelId, id_of
from dlbricks_tui.tui.run import actions
from dlbricks_tui.tui.run.words import joined
from dlbricks_tui.tui.widgets.rows import RowsView
from dlbricks_tui.tui.widgets.text import TextLines
from dlbricks_tui.wording.numbers import counted, duration, names_of, percent

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from dlbricks_tui.tui.run.runs import RunPreview

TARGETS = (0.005, 0.01, 0.02, 0.05)
BUDGETS_SECONDS = (60.0, 300.0, 900.0, 1800.0, 3600.0, 7200.0, 14400.0)
# Timing whole models takes longer than timing all their bricks.
MOST_MODELS_END_TO_END = 3


@dataclass(frozen=True, slots=True)
class RunSettings:
    """The settings of a run; `threads` None is the default of the runtime."""

    choices: Choices
    # The name of the runtime and those to choose from.
    runtime: str
    runtimes: tuple[str, ...]
    # None is the default method.
    method: Method | None = None
    end_to_end: bool = False
    target: float = 0.01
    budget_seconds: float | None = None
    threads: int | None = None
    retry_failed: bool = False
    again: bool = False


class RunSetting(Enum):
    """The settings in the order of their rows."""

    LEVEL = "level"
    GRANULARITY = "granularity"
    CUT = "cut"
    METHOD = "method"
    END_TO_END = "end to end"
    TARGET = "target interval"
    BUDGET = "time budget"
    RUNTIME = "runtime"
    THREADS = "threads"
    KNOWN = "known before"
    RETRY = "failed before"


def settings_for(
    choices: Choices, sources: Sequence[ModelSource], data: Path, config: Config, last: RunSettings | None = None
) -> RunSettings:
    """Return the initial settings: those of the last run, or of the config.

    Many models are not timed end to end, which would take too long. The runtime has to match the format of the models.
    """
    registry = Registry(data)
    runtimes = _runtimes(registry, sources)
    before = last or _first(choices, registry, runtimes, config)
    runtime = next(name for name in (before.runtime, config.runtime, *runtimes) if name in runtimes)
    few = len(sources) <= MOST_MODELS_END_TO_END
    # Repeating known measurements applies to one run only.
    kept = replace(before, end_to_end=few and before.end_to_end, again=False)
    return replace(kept, choices=choices, runtime=runtime, runtimes=runtimes)


def run_setting_text(setting: RunSetting, settings: RunSettings) -> tuple[str, str]:
    """Return the value of a setting and its meaning."""
    return _KINDS[setting].shown(settings), _KINDS[setting].meaning


def change_run_setting(setting: RunSetting, settings: RunSettings, step: int) -> RunSettings:
    """Return the settings with one of them at its next value, or the previous one for `step` -1."""
    return _KINDS[setting].changed(settings, step)


def request_for(
    sources: Sequence[ModelSource], shapes: Mapping[ModelId, Mapping[str, Shape]], settings: RunSettings, data: Path
) -> RunRequest:
    """Return the request of a run; `shapes` are the given input shapes."""
    choices = settings.choices
    runtime = _with_threads(Registry(data).find(settings.runtime), settings.threads)
    rule = Adaptive(target=settings.target)
    usual = usual_method(choices.cutting, rule, runtime)
    return RunRequest(
        models=chosen(sources),
        runtime=runtime,
        inputs=_inputs(sources, shapes),
        level=choices.level,
        cutting=choices.cutting,
        rule=rule,
        time_budget_seconds=settings.budget_seconds,
        end_to_end=settings.end_to_end,
        retry_failed=settings.retry_failed,
        again=settings.again,
        calibration=CalibrationPolicy.ONCE,
        # Programs that cannot be timed inside of networks are timed alone.
        method=usual if settings.method is None or usual is Method.ALONE else settings.method,
    )


def _runtimes(registry: Registry, sources: Sequence[ModelSource]) -> tuple[str, ...]:
    """Return the runtimes that run all these models, the default first."""
    usual = registry.runtime_for({source.format for source in sources})
    others = [it.name for it in registry.all() if it.traits.format is usual.traits.format and it.name != usual.name]
    return (usual.name, *others)


def _first(choices: Choices, registry: Registry, runtimes: tuple[str, ...], config: Config) -> RunSettings:
    # An unknown runtime in the config is an error.
    runtime = runtimes[0] if config.runtime is None else registry.find(config.runtime).name
    return RunSettings(
        choices,
        runtime,
        runtimes,
        end_to_end=True,
        target=config.target_ci,
        budget_seconds=config.time_budget,
        threads=config.threads,
    )


def _with_threads(runtime: Runtime, threads: int | None) -> Runtime:
    return runtime if threads is None else replace(runtime, settings=replace(runtime.settings, threads=threads))


def _inputs(sources: Sequence[ModelSource], shapes: Mapping[ModelId, Mapping[str, Shape]]) -> tuple[InputShape, ...]:
    given = {source.name: dict(shapes.get(id_of(source), {})) for source in sources}
    first = next(iter(given.values()), {})
    apart = [name for name, its in given.items() if its and any(its != other for other in given.values())]
    if apart:
        # The inputs of a run apply to all its models, as their names are mostly the same.
        raise RunError(f"{apart[0]} has input shapes of its own: run it by itself, without other models marked")
    return tuple(InputShape(name, shape) for name, shape in first.items())


@dataclass(frozen=True, slots=True)
class _SettingKind:
    shown: Callable[[RunSettings], str]
    changed: Callable[[RunSettings, int], RunSettings]
    meaning: str


def _stepped(change: Callable[[Choices, int], Choices]) -> Callable[[RunSettings, int], RunSettings]:
    return lambda settings, step: replace(settings, choices=change(settings.choices, step))


def _next_target(settings: RunSettings, step: int) -> RunSettings:
    return replace(settings, target=next_of(with_own(TARGETS, settings.target), settings.target, step))


def _next_budget(settings: RunSettings, step: int) -> RunSettings:
    known = (None, *with_own(BUDGETS_SECONDS, settings.budget_seconds))
    return replace(settings, budget_seconds=next_of(known, settings.budget_seconds, step))


def _next_threads(settings: RunSettings, step: int) -> RunSettings:
    known = (None, *with_own(range(1, (os.cpu_count() or 1) + 1), settings.threads))
    return replace(settings, threads=next_of(known, settings.threads, step))


_KINDS = {
    RunSetting.LEVEL: _SettingKind(
        lambda it: it.choices.level.value,
        _stepped(lambda choices, step: replace(choices, level=next_of(tuple(Level), choices.level, step))),
        "fused layers, or those of the file",
    ),
    RunSetting.GRANULARITY: _SettingKind(
        lambda it: f"{it.choices.granularity}",
        _stepped(lambda choices, step: choices.with_granularity(choices.granularity + step)),
        "the most layers of a brick",
    ),
    RunSetting.CUT: _SettingKind(
        lambda it: it.choices.cut.value,
        _stepped(lambda choices, step: replace(choices, cut=next_of(tuple(Cut), choices.cut, step))),
        "the windows of layers that are bricks",
    ),
    RunSetting.METHOD: _SettingKind(
        lambda it: "usual" if it.method is None else it.method.value,
        lambda settings, step: replace(settings, method=next_of((None, *Method), settings.method, step)),
        "bricks inside of networks, or alone",
    ),
    RunSetting.END_TO_END: _SettingKind(
        lambda it: "yes" if it.end_to_end else "no",
        lambda settings, _: replace(settings, end_to_end=not settings.end_to_end),
        "whole models too, as a check",
    ),
    RunSetting.TARGET: _SettingKind(
        lambda it: f"±{percent(it.target, 1)}",
        _next_target,
        "the precision of each brick",
    ),
    RunSetting.BUDGET: _SettingKind(
        lambda it: "none" if it.budget_seconds is None else duration(it.budget_seconds),
        _next_budget,
        "stop after this time",
    ),
    RunSetting.RUNTIME: _SettingKind(
        lambda it: it.runtime,
        lambda settings, step: replace(settings, runtime=next_of(settings.runtimes, settings.runtime, step)),
        "the runtime that runs the bricks",
    ),
    RunSetting.THREADS: _SettingKind(
        lambda it: "default" if it.threads is None else f"{it.threads}",
        _next_threads,
        "the threads of the framework",
    ),
    RunSetting.KNOWN: _SettingKind(
        lambda it: "run again" if it.again else "leave out",
        lambda settings, _: replace(settings, again=not settings.again),
        "bricks that were measured before",
    ),
    RunSetting.RETRY: _SettingKind(
        lambda it: "try again" if it.retry_failed else "leave out",
        lambda settings, _: replace(settings, retry_failed=not settings.retry_failed),
        "bricks that failed in an earlier run",
    ),
}


_NAME, _VALUE = 16, 13
_LINES_BELOW = 3


class StartRunScreen(Dialog[RunSettings]):
    """Returns the settings to start the run with."""

    scope = actions.START_RUN
    CSS_PATH = "run.tcss"
    ABOUT = (
        "Bricks that were measured on this system in the same way are not run again, unless you ask for it. The run is"
        " a separate process that continues if you quit. You can cancel it at any time; its measurements are kept."
    )

    class Previewed(Message):
        """The preview of a run with these settings."""

        def __init__(self, settings: RunSettings, preview: RunPreview) -> None:
            super().__init__()
            self.settings = settings
            self.preview = preview

    def __init__(
        self, models: tuple[str, ...], settings: RunSettings, preview_run: Callable[[RunSettings], RunPreview]
    ) -> None:
        super().__init__()
        self._models = models
        self._preview_run = preview_run
        self._rows = _SettingRows(settings)
        self._preview: RunPreview | None = None
        self._below = TextLines(self._below_lines, classes="run-preview")

    def compose(self) -> ComposeResult:
        with Box(self._title, actions.START_RUN):
            yield self._rows
            yield self._below

    def on_mount(self) -> None:
        self._rows.rows_changed()
        self._start_preview()

    def on_start_run_screen_previewed(self, event: Previewed) -> None:
        if event.settings == self._rows.settings:
            self._preview = event.preview
            self._below.refresh(layout=True)

    def action_begin(self) -> None:
        self.dismiss(self._rows.settings)

    def action_next(self) -> None:
        self._change(1)

    def action_previous(self) -> None:
        self._change(-1)

    @property
    def _title(self) -> str:
        return f"Run {names_of(self._models)}"

    def _change(self, step: int) -> None:
        self._rows.settings = change_run_setting(self._rows.setting, self._rows.settings, step)
        self._rows.refresh()
        self._preview = None
        self._below.refresh(layout=True)
        self._start_preview()

    def _start_preview(self) -> None:
        self.run_in_thread(partial(self._post_preview, self._rows.settings), "preview")

    def _post_preview(self, settings: RunSettings) -> None:
        self.post_message(self.Previewed(settings, self._preview_run(settings)))

    def _below_lines(self, width: int) -> tuple[Line, ...]:
        found = wrapped(_preview_line(self._preview), width)
        if self._preview is not None and self._preview.calibration_seconds:
            told = f"The calibration takes about {duration(self._preview.calibration_seconds)} of it."
            found += wrapped(line(Span(told, "muted")), width)
        if self._preview is not None and self._preview.holder:
            found += wrapped(line(Span(f"It will wait for {self._preview.holder}", "warn")), width)
        return (*found, *[BLANK] * (_LINES_BELOW - len(found)))


class _SettingRows(RowsView):
    def __init__(self, settings: RunSettings) -> None:
        super().__init__()
        self.settings = settings
        self._settings = tuple(RunSetting)

    @property
    def row_count(self) -> int:
        return len(self._settings)

    @property
    def setting(self) -> RunSetting:
        """The selected setting."""
        return self._settings[self.cursor]

    def row(self, index: int, width: int) -> Line:
        setting = self._settings[index]
        value, meaning = run_setting_text(setting, self.settings)
        # The name of a runtime may be long and must be complete.
        said = column(value, max(_VALUE, cell_len(value) + 1), "strong")
        return (column(setting.value, _NAME), said, Span(meaning, "muted"))


def _preview_line(preview: RunPreview | None) -> Line:
    if preview is None:
        return line(Span("Looking up what is already measured.", "muted"))
    spans = []
    if preview.bricks or preview.whole_models or not preview.unread:
        spans.append(Span(f"{counted(preview.bricks, 'brick')} to run", "strong"))
    if preview.whole_models:
        spans.append(Span(f"{counted(preview.whole_models, 'whole model')} to time", "strong"))
    if preview.bricks or preview.whole_models:
        spans.append(Span(f"about {duration(preview.seconds)}", "strong"))
    if preview.reused:
        spans.append(Span(f"{preview.reused:,} known"))
    if preview.failed_before:
        spans.append(Span(f"{preview.failed_before:,} failed before", "warn"))
    if preview.unread:
        spans.append(Span(f"{names_of(preview.unread)} not read yet: the time is unknown", "warn"))
    return joined(spans)
