"""A setting: its name, the values that it may have, what it does, and where its default comes from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, EnumMeta
from functools import cache
from types import MappingProxyType
from typing import Any, Generic, TypeVar, get_args, get_origin, get_type_hints

from dlbricks_tui.errors import UserError

# Python refuses to read thousands of digits, and no limit has so many.
_MOST_DIGITS = 20
# A longer list of words makes the help of an option too wide.
_WIDEST_SIGN = 36

# Values of a list in a document.
_MOST_TOGETHER = 64

Value = TypeVar("Value")
Member = TypeVar("Member", bound=Enum)


class ValueRefusedError(ValueError):
    """A text or a value is none of a kind; the message says what to give."""


@dataclass(frozen=True, slots=True)
class ValueKind(Generic[Value]):
    """The values that a setting may have."""

    # Completes "give ..." and "it has to be ...".
    allowed: str
    # Reads a text; raises ValueError for one that is no value.
    parse: Callable[[str], Value]
    accepts: Callable[[Any], bool]
    # The JSON schema of values in a document, and what a value that keeps to it becomes.
    schema: Mapping[str, Any] = field(hash=False)
    load: Callable[[Any], Value]
    # A value as it would be typed.
    text: Callable[[Value], str] = str
    # What stands for a value in the help of a command.
    sign: str = "N"
    # The values that boxes step through.
    offered: tuple[Value, ...] = ()
    # True if a file may write a value as a text.
    is_text: bool = False
    # True if it is a number, which the user may write in a box.
    is_number: bool = False
    # True if it is yes or no, which an option says without a value.
    is_flag: bool = False

    def read(self, text: str) -> Value:
        """Return the value in a text; raise ValueRefusedError where there is none."""
        try:
            value = self.parse(text)
        except ValueError:
            raise ValueRefusedError(f"give {self.allowed}") from None
        if not self.accepts(value):
            raise ValueRefusedError(f"give {self.allowed}")
        return value

    def checked(self, value: object) -> Value:
        """Return a value as a file has it; raise ValueRefusedError if it is not allowed."""
        if self.is_text and isinstance(value, str):
            return self.read(value)
        if not self.accepts(value):
            raise ValueRefusedError(f"give {self.allowed}")
        found: Value = value  # type: ignore[assignment]
        return found


def whole(least: int, most: int, *offered: int, sign: str = "N") -> ValueKind[int]:
    """Allow the whole numbers from `least` to `most`."""

    def parse(text: str) -> int:
        return int(text) if text.isascii() and text.isdecimal() and len(text) < _MOST_DIGITS else least - 1

    allowed = f"a whole number from {least:,} to {most:,}"
    schema = {"type": "integer", "minimum": least, "maximum": most}
    return ValueKind(allowed, parse, _within(schema), schema, int, sign=sign, offered=offered, is_number=True)


def number(most: float, *offered: float, sign: str = "N") -> ValueKind[float]:
    """Allow the numbers above 0 and up to `most`."""
    allowed = f"a number above 0 and up to {most:,.0f}"
    return _number(allowed, sign, offered, {"exclusiveMinimum": 0, "maximum": most})


def share(*offered: float) -> ValueKind[float]:
    """Allow the shares above 0 % and below 100 %, written as `5%` or `0.05`."""

    def parse(text: str) -> float:
        return _float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)

    allowed = "a share above 0 % and below 100 %, such as 5% or 0.05"
    found = _number(allowed, "SHARE", offered, {"exclusiveMinimum": 0, "exclusiveMaximum": 1})
    return replace(found, parse=parse, text=lambda it: f"{100 * it:.15g}%", is_text=True)


def percentile(*offered: float) -> ValueKind[float]:
    """Allow the numbers between 0 and 100."""
    allowed = "a number between 0 and 100, such as 99"
    return _number(allowed, "P", offered, {"exclusiveMinimum": 0, "exclusiveMaximum": 100})


def _number(allowed: str, sign: str, offered: tuple[float, ...], bounds: Mapping[str, float]) -> ValueKind[float]:
    schema = {"type": "number", **bounds}
    return ValueKind(allowed, _float, _within(schema), schema, float, "{:.15g}".format, sign, offered, is_number=True)


def one_of(*members: Member) -> ValueKind[Member]:
    """Allow some members of an enumeration, by their words."""
    known = {str(it.value): it for it in members}

    def parse(text: str) -> Member:
        if text not in known:
            raise ValueError(text)
        return known[text]

    allowed, sign = f"one of {', '.join(known)}", f"{{{','.join(known)}}}"
    if len(sign) > _WIDEST_SIGN:
        sign = "WORD"
    schema = {"enum": list(known)}
    accepts = members.__contains__
    return ValueKind(allowed, parse, accepts, schema, parse, lambda it: str(it.value), sign, members, is_text=True)


def name(allowed: str, sign: str = "NAME") -> ValueKind[str]:
    """Allow any text that is not empty; the code that uses it checks what it names."""
    schema = {"type": "string", "minLength": 1}
    return ValueKind(allowed, str, lambda it: isinstance(it, str) and it != "", schema, str, sign=sign, is_text=True)


def flag(yes: str = "yes", no: str = "no") -> ValueKind[bool]:
    """Allow yes and no, in words that tell what they mean."""
    words = {yes: True, no: False}

    def parse(text: str) -> bool:
        if text not in words:
            raise ValueError(text)
        return words[text]

    return ValueKind(
        f"{yes} or {no}",
        parse,
        (True, False).__contains__,
        {"type": "boolean"},
        bool,
        lambda it: yes if it else no,
        offered=(False, True),
        is_flag=True,
    )


def several(kind: ValueKind[Value], *together: tuple[Value, ...]) -> ValueKind[tuple[Value, ...]]:
    """Allow one value of a kind or more, with commas between them; each counts once.

    Boxes offer each value by itself, and those of `together`.
    """

    def parse(text: str) -> tuple[Value, ...]:
        # The identity of a runtime has spaces and commas.
        is_name = kind.schema.get("type") == "string" and " " in text
        words = [text] if is_name else [word.strip() for word in text.split(",")]
        return tuple(dict.fromkeys(map(kind.read, words)))

    def accepts(values: object) -> bool:
        return isinstance(values, tuple) and bool(values) and all(map(kind.accepts, values))

    def load(values: Any) -> tuple[Value, ...]:
        return tuple(dict.fromkeys(map(kind.load, values if isinstance(values, list) else [values])))

    return ValueKind(
        f"{kind.allowed}, or several with commas",
        parse,
        accepts,
        {"anyOf": [kind.schema, {"type": "array", "maxItems": _MOST_TOGETHER, "items": kind.schema}]},
        load,
        lambda values: ",".join(map(kind.text, values)),
        kind.sign,
        (*((it,) for it in kind.offered), *together),
        is_number=kind.is_number,
    )


def next_of(values: Sequence[Value], value: Value, step: int) -> Value:
    """Return the value `step` places after this one, cyclically; the first value if this one is not among them."""
    return values[(values.index(value) + step) % len(values)] if value in values else values[0]


def with_own(values: Iterable[Value], own: Value | None) -> tuple[Value, ...]:
    """Return the values with the user's own among them: in order if they are numbers, else at the end."""
    found = tuple(values)
    if own is None or own in found:
        return found
    if all(isinstance(it, int | float) for it in (*found, own)):
        return tuple(sorted((*found, own)))  # type: ignore[type-var]
    return (*found, own)


def _within(schema: Mapping[str, Any]) -> Callable[[object], bool]:
    """Return the check that a value is a number within the bounds of a schema."""
    of = int if schema["type"] == "integer" else (int, float)

    def accepts(value: Any) -> bool:
        if not isinstance(value, of) or isinstance(value, bool):
            return False
        least, most = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
        above, below = schema.get("exclusiveMinimum", -math.inf), schema.get("exclusiveMaximum", math.inf)
        return bool(least <= value <= most and above < value < below)

    return accepts


def _float(text: str) -> float:
    return float(text) if text.isascii() else math.nan


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


@cache
def _enumerations(kind: Any) -> dict[str, tuple[type[Enum], bool]]:
    """Return the fields of a class with members of an enumeration, and whether they are always several."""

    def parts(hint: Any) -> Iterator[Any]:
        yield hint
        for each in get_args(hint):
            yield from parts(each)

    hints = get_type_hints(kind).items()
    found: dict[str, list[Any]] = {name: [it for it in parts(hint) if isinstance(it, EnumMeta)] for name, hint in hints}
    return {name: (found[name][0], get_origin(hint) is tuple) for name, hint in hints if found[name]}


def member(kind: type[Member], value: Any, name: str, refusal: type[UserError]) -> Member:
    """Return a member of an enumeration, which may be given by its value; raise an error for anything else."""
    try:
        return kind(value)
    except ValueError:
        raise refusal(f"{name} {value!r}: give one of {', '.join(str(it.value) for it in kind)}") from None


def require_allowed(options: Any, settings: Iterable[Setting[Any]], refusal: type[UserError]) -> None:
    """Raise an error of this kind for the first value of an options class that its setting does not allow.

    Members of enumerations may be given by their values: code that asks if a value is a member would miss those.
    """
    of: Any = type(options)
    for name, (kind, are_several) in _enumerations(of).items():
        value = getattr(options, name)
        if isinstance(value, tuple | list):
            value = tuple(member(kind, it, name, refusal) for it in value)
        elif value is not None:
            value = member(kind, value, name, refusal)
            value = (value,) if are_several else value
        object.__setattr__(options, name, value)
    for setting in settings:
        setting.require(getattr(options, setting.field), refusal)


def fields_of(options: object, settings: Iterable[Setting[Any]]) -> dict[str, Any]:
    """Return the values of an options class by their fields."""
    return {it.field: getattr(options, it.field) for it in settings}
