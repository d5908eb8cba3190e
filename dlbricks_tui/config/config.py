"""The settings as they count: every one has a value, and it is known who gave it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeVar

from dlbricks_tui.config.option import Value
from dlbricks_tui.config.options import BY_NAME, OPTIONS

BY_DEFAULT = "default"

Read = TypeVar("Read", str, int, float)


@dataclass(frozen=True, slots=True)
class Given:
    """A value, and where it was given: a line of the file, a variable, the command line."""

    value: Value
    where: str = BY_DEFAULT


@dataclass(frozen=True, slots=True)
class KeysGiven:
    """The keys that an action is to have, and where that was said."""

    keys: tuple[str, ...]
    where: str


def _defaults() -> Mapping[str, Given]:
    return MappingProxyType({option.name: Given(option.default) for option in OPTIONS})


@dataclass(frozen=True, slots=True)
class Config:
    """All settings, and the keys by the id of their action."""

    given: Mapping[str, Given] = field(default_factory=_defaults)
    keys: Mapping[str, KeysGiven] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def theme(self) -> str:
        """The name of the theme."""
        return self._of("workbench.theme", str)

    @property
    def mouse(self) -> str:
        """Whether to listen to the mouse: auto, on or off."""
        return self._of("workbench.mouse", str)

    @property
    def remote(self) -> str:
        """Whether to write little and seldom: auto, on or off."""
        return self._of("workbench.remote", str)

    @property
    def granularity(self) -> int:
        """The most layers of a sequence."""
        return self._of("cutting.granularity", int)

    @property
    def cut(self) -> str:
        """Which windows of layers are sequences."""
        return self._of("cutting.cut", str)

    @property
    def order(self) -> str:
        """In which order layers are cut."""
        return self._of("cutting.order", str)

    @property
    def workers(self) -> int | None:
        """For how many workers to compose."""
        return self._perhaps("estimate.workers", int)

    @property
    def runtime(self) -> str | None:
        """The runtime that runs bricks."""
        return self._perhaps("run.runtime", str)

    @property
    def threads(self) -> int | None:
        """How many threads the framework computes with."""
        return self._perhaps("run.threads", int)

    @property
    def target_ci(self) -> float:
        """How well a brick is to be known."""
        return self._of("run.target_ci", float)

    @property
    def time_budget(self) -> float | None:
        """After how many seconds a run stops."""
        return self._perhaps("run.time_budget", float)

    def value(self, name: str) -> Value:
        """The value of a setting by its full name."""
        return self.given[name].value

    def _of(self, name: str, kind: type[Read]) -> Read:
        found = self._perhaps(name, kind)
        if found is None:
            raise TypeError(f"{name} has a default, {BY_NAME[name].default!r}")
        return found

    def _perhaps(self, name: str, kind: type[Read]) -> Read | None:
        value = self.given[name].value
        return None if value is None else kind(value)
