"""The values of all settings, each with the place where it was set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from dlbricks_tui.config.options import ON, OPTIONS, Value
from dlbricks_tui.errors import UserError


class ConfigError(UserError):
    """An unknown setting or a value that it does not allow; the message says where."""


BY_DEFAULT = "default"

Read = TypeVar("Read")


@dataclass(frozen=True, slots=True)
class Given:
    """A value and where it was set: a line of the file, a variable, or the command line."""

    value: Value
    where: str = BY_DEFAULT


@dataclass(frozen=True, slots=True)
class KeysGiven:
    """The keys of an action and where they were set."""

    keys: tuple[str, ...]
    where: str


class _Setting(Generic[Read]):
    """A property of Config: the value of the setting of this name."""

    def __init__(self, name: str, read: Callable[[Any], Read]) -> None:
        self.name = name
        self.read = read

    def __get__(self, config: Config, _: object) -> Read:
        return self.read(config.value(self.name))


class _OpenSetting(_Setting["Read | None"]):
    """A setting that has no value until the user gives one."""

    def __get__(self, config: Config, _: object) -> Read | None:
        return None if config.value(self.name) is None else self.read(config.value(self.name))


@dataclass(frozen=True, slots=True)
class Config:
    """The values of all settings by full name, and the key bindings by action."""

    given: Mapping[str, Given] = field(default_factory=lambda: {it.name: Given(it.default) for it in OPTIONS})
    keys: Mapping[str, KeysGiven] = field(default_factory=dict)

    theme = _Setting("workbench.theme", str)
    mouse = _Setting("workbench.mouse", str)
    remote = _Setting("workbench.remote", str)
    granularity = _Setting("cutting.granularity", int)
    cut = _Setting("cutting.cut", str)
    order = _Setting("cutting.order", str)
    workers = _OpenSetting("estimate.workers", int)
    predicts = _Setting("estimate.predictions", lambda value: value == ON)
    runtime = _OpenSetting("run.runtime", str)
    threads = _OpenSetting("run.threads", int)
    target_ci = _Setting("run.target_ci", float)
    time_budget = _OpenSetting("run.time_budget", float)

    def value(self, name: str) -> Value:
        """Return the value of a setting by its full name."""
        return self.given[name].value
