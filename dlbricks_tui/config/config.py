"""The settings that the config file can set, and their values, each with the place where it was set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic

from dlbricks_tui.errors import UserError
from dlbricks_tui.settings.cutting import CUT, GRANULARITY, ORDER, WORKERS
from dlbricks_tui.settings.measuring import TARGET_INTERVAL, TIME_BUDGET
from dlbricks_tui.settings.setting import Setting, Value, plain
from dlbricks_tui.settings.variant import RUNTIME, THREADS
from dlbricks_tui.settings.workbench import MOUSE, PREDICTIONS, REMOTE, THEME, Switch

CONFIGURED: tuple[Setting[Any], ...] = (
    THEME,
    MOUSE,
    REMOTE,
    GRANULARITY,
    CUT,
    ORDER,
    WORKERS,
    PREDICTIONS,
    RUNTIME,
    THREADS,
    TARGET_INTERVAL,
    TIME_BUDGET,
)
BY_NAME = {it.config: it for it in CONFIGURED}
# The section of key bindings, by action. Only the workbench knows which actions there are.
KEYS = "keys"
SECTIONS = (*dict.fromkeys(name.partition(".")[0] for name in BY_NAME), KEYS)
BY_DEFAULT = "default"


class ConfigError(UserError):
    """An unknown setting or a value that it does not allow; the message says where."""


def variable_of(setting: Setting[Any]) -> str:
    """Return the environment variable that overrides the file."""
    return f"DLBRICKS_{setting.config.replace('.', '_').upper()}"


def in_file(value: object) -> str:
    """Return a value as the file writes it."""
    found = plain(value)
    if found is None:
        return "(open)"
    return '"' + found.replace("\\", "\\\\").replace('"', '\\"') + '"' if isinstance(found, str) else f"{found!r}"


@dataclass(frozen=True, slots=True)
class Given:
    """A value and where it was set: a line of the file, a variable, or the command line."""

    value: Any
    where: str = BY_DEFAULT


@dataclass(frozen=True, slots=True)
class KeysGiven:
    """The keys of an action and where they were set."""

    keys: tuple[str, ...]
    where: str


class _Given(Generic[Value]):
    """A property of Config: the value of a setting that has a default."""

    def __init__(self, setting: Setting[Value]) -> None:
        self._name = setting.config

    def __get__(self, config: Config, _: object) -> Value:
        found: Value = config.given[self._name].value
        return found


class _GivenOrNone(_Given[Value]):
    """The value of a setting that has none until the user gives one."""

    def __get__(self, config: Config, _: object) -> Value | None:  # type: ignore[override]
        return super().__get__(config, _)


@dataclass(frozen=True, slots=True)
class Config:
    """The values of all settings by full name, and the key bindings by action."""

    given: Mapping[str, Given] = field(default_factory=lambda: {it.config: Given(it.default) for it in CONFIGURED})
    keys: Mapping[str, KeysGiven] = field(default_factory=dict)

    theme = _Given(THEME)
    mouse = _Given(MOUSE)
    remote = _Given(REMOTE)
    granularity = _Given(GRANULARITY)
    cut = _Given(CUT)
    order = _Given(ORDER)
    workers = _GivenOrNone(WORKERS)
    runtime = _GivenOrNone(RUNTIME)
    threads = _GivenOrNone(THREADS)
    target_ci = _Given(TARGET_INTERVAL)
    time_budget = _GivenOrNone(TIME_BUDGET)
    predictions = _Given(PREDICTIONS)

    @property
    def predicts(self) -> bool:
        """True if the latencies of bricks that were not measured are predicted."""
        return self.predictions is Switch.ON
