"""The values of all settings, each with the place where it was set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeVar

from dlbricks_tui.config.options import BY_NAME, OPTIONS, Value
from dlbricks_tui.errors import UserError


class ConfigError(UserError):
    """An unknown setting or a value that it does not allow; the message says where."""


BY_DEFAULT = "default"

Read = TypeVar("Read", str, int, float)


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


def _defaults() -> Mapping[str, Given]:
    return MappingProxyType({option.name: Given(option.default) for option in OPTIONS})


@dataclass(frozen=True, slots=True)
class Config:
    """The values of all settings, and the key bindings by action."""

    given: Mapping[str, Given] = field(default_factory=_defaults)
    keys: Mapping[str, KeysGiven] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def theme(self) -> str:
        """The name of the theme."""
        return self._of("workbench.theme", str)

    @property
    def mouse(self) -> str:
        """Use of the mouse: auto, on or off."""
        return self._of("workbench.mouse", str)

    @property
    def remote(self) -> str:
        """Drawing less for a slow connection: auto, on or off."""
        return self._of("workbench.remote", str)

    @property
    def granularity(self) -> int:
        """The largest number of layers in a sequence."""
        return self._of("cutting.granularity", int)

    @property
    def cut(self) -> str:
        """The windows of layers that are sequences."""
        return self._of("cutting.cut", str)

    @property
    def order(self) -> str:
        """The order in which layers are cut."""
        return self._of("cutting.order", str)

    @property
    def workers(self) -> int | None:
        """The number of workers of the composition."""
        return self._optional("estimate.workers", int)

    @property
    def runtime(self) -> str | None:
        """The runtime that runs bricks."""
        return self._optional("run.runtime", str)

    @property
    def threads(self) -> int | None:
        """The threads of the framework."""
        return self._optional("run.threads", int)

    @property
    def target_ci(self) -> float:
        """The precision at which a brick is done."""
        return self._of("run.target_ci", float)

    @property
    def time_budget(self) -> float | None:
        """The seconds after which a run stops."""
        return self._optional("run.time_budget", float)

    def value(self, name: str) -> Value:
        """Return the value of a setting by its full name."""
        return self.given[name].value

    def _of(self, name: str, kind: type[Read]) -> Read:
        found = self._optional(name, kind)
        if found is None:
            raise TypeError(f"{name} has a default, {BY_NAME[name].default!r}")
        return found

    def _optional(self, name: str, kind: type[Read]) -> Read | None:
        value = self.given[name].value
        return None if value is None else kind(value)
