"""A setting: its name, what it may be, what it does, and where its default comes from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any, Generic

from dlbricks_tui.errors import UserError
from dlbricks_tui.settings.kinds import Value, ValueKind, several


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting(Generic[Value]):
    """Something that a user can choose."""

    # In words, as boxes show it: `time budget`.
    name: str
    kind: ValueKind[Value]
    # What it is, as the help of a command says it.
    about: str
    # The few words beside its value in a box.
    meaning: str = ""
    # None: there is no value unless the user chooses one.
    default: Value | None = None
    # What counts then, in words; empty: nothing is to be said.
    usual: str = ""
    # Where options classes keep it; empty: the name.
    kept_in: str = ""
    # The option of commands; empty: the name with hyphens.
    spelled: str = ""
    # A letter for the option.
    letter: str = ""
    # Its full name in the config file; empty: the file cannot set it.
    config: str = ""
    # Several values of a variant, of which each combination is measured.
    several_offered: tuple[tuple[Value, ...], ...] = ()

    @property
    def option(self) -> str:
        """The option of commands, such as `--time-budget`."""
        return f"--{self.spelled or self.name.replace(' ', '-')}"

    @property
    def dest(self) -> str:
        """The name of the option among the arguments of a command, such as `time_budget`."""
        return self.option[2:].replace("-", "_")

    @property
    def field(self) -> str:
        """The field of options classes, such as `time_budget_seconds`."""
        return self.kept_in or self.name.replace(" ", "_")

    @property
    def many(self) -> ValueKind[tuple[Value, ...]]:
        """The kind of several values."""
        return several(self.kind, *self.several_offered)

    def require(self, value: Any, refusal: type[UserError]) -> None:
        """Raise an error of this kind if a value, or one of several, is not allowed; None is no value."""
        for each in value if isinstance(value, tuple | list) else (value,):
            if each is not None and not self.kind.accepts(each):
                told = f"{each:,}" if isinstance(each, int) else f"{each:g}" if isinstance(each, float) else f"{each!r}"
                raise refusal(f"{self.field} {told}: give {self.kind.allowed}")

    def text(self, value: Any) -> str:
        """Return a value, or several, as it would be typed; an empty text where there is none."""
        if value is None or value == ():
            return ""
        return self.many.text(value) if isinstance(value, tuple) else self.kind.text(value)


def options_in_words(
    given: Iterable[tuple[Setting[Any], Any]], usual: Mapping[Setting[Any], Any] = MappingProxyType({})
) -> Iterator[str]:
    """Yield the options of a command that has these values; None and usual values need no option."""
    for setting, value in given:
        if value is not None and value != usual.get(setting, setting.default):
            yield from (setting.option, setting.text(value))


def plain(value: object) -> Any:
    """Return a value as TOML and JSON have it."""
    return value.value if isinstance(value, Enum) else value


def require_allowed(options: object, settings: Iterable[Setting[Any]], refusal: type[UserError]) -> None:
    """Raise an error of this kind for the first value of an options class that its setting does not allow."""
    for setting in settings:
        setting.require(getattr(options, setting.field), refusal)


def fields_of(options: object, settings: Iterable[Setting[Any]]) -> dict[str, Any]:
    """Return the values of an options class by their fields."""
    return {it.field: getattr(options, it.field) for it in settings}
