"""The settings that the config file can set: their values and places, reading them, and changing one of them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic

from dlbricks_tui.errors import UserError
from dlbricks_tui.evaluations.faults import line_at, offset_of, offsets_of
from dlbricks_tui.files import in_turn, parsed_toml, read_text, write_atomically
from dlbricks_tui.settings.cutting import CUT, GRANULARITY, ORDER, WORKERS
from dlbricks_tui.settings.measuring import TARGET_INTERVAL, TIME_BUDGET
from dlbricks_tui.settings.setting import Setting, Value, plain
from dlbricks_tui.settings.variant import RUNTIME, THREADS
from dlbricks_tui.settings.workbench import MOUSE, PREDICTIONS, REMOTE, THEME, Switch

# The section of key bindings, by action. Only the workbench knows which actions there are.
KEYS = "keys"
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
    """A value, or the keys of an action, and where it was set: a line of the file, a variable, or the command line."""

    value: Any
    where: str = BY_DEFAULT


class _Given(Generic[Value]):
    """A property of Config: the value of a setting that has a default."""

    def __init__(self, setting: Setting[Value]) -> None:
        self.setting = setting

    def __get__(self, config: Config, _: object) -> Value:
        found: Value = config.given[self.setting.config].value
        return found


class _GivenOrNone(_Given[Value]):
    """The value of a setting that has none until the user gives one."""

    def __get__(self, config: Config, _: object) -> Value | None:  # type: ignore[override]
        return super().__get__(config, _)


@dataclass(frozen=True, slots=True)
class Config:
    """The values of all settings by full name, and the key bindings by action."""

    given: Mapping[str, Given] = field(default_factory=lambda: {it.config: Given(it.default) for it in CONFIGURED})
    keys: Mapping[str, Given] = field(default_factory=dict)

    theme = _Given(THEME)
    mouse = _Given(MOUSE)
    remote = _Given(REMOTE)
    granularity = _Given(GRANULARITY)
    cut = _Given(CUT)
    order = _Given(ORDER)
    workers = _GivenOrNone(WORKERS)
    predictions = _Given(PREDICTIONS)
    runtime = _GivenOrNone(RUNTIME)
    threads = _GivenOrNone(THREADS)
    target_ci = _Given(TARGET_INTERVAL)
    time_budget = _GivenOrNone(TIME_BUDGET)

    @property
    def predicts(self) -> bool:
        """True if the latencies of bricks that were not measured are predicted."""
        return self.predictions is Switch.ON


def unknown_theme(config: Config, themes: Collection[str]) -> str:
    """Return what is wrong if the config names none of these themes; else an empty text."""
    name, where = config.theme, config.given[THEME.config].where
    return "" if name in themes else f"{where}: no theme is called {name}; there are {', '.join(themes)}"


# In the order of the file.
CONFIGURED: tuple[Setting[Any], ...] = tuple([it.setting for it in vars(Config).values() if isinstance(it, _Given)])
BY_NAME = {it.config: it for it in CONFIGURED}
SECTIONS = (*dict.fromkeys(name.partition(".")[0] for name in BY_NAME), KEYS)

_ERROR_LINE = re.compile(r"\(at line (\d+), column \d+\)$")


@dataclass(frozen=True, slots=True)
class Statement:
    """A value of the file by its full name, and its line."""

    name: str
    value: object
    line: int


def statements(text: str, path: str) -> list[Statement]:
    """Return the statements of a file; raise ConfigError if it is not TOML."""
    try:
        document = parsed_toml(text)
    except ValueError as error:
        line = _ERROR_LINE.search(str(error))
        where = f"{path}:{line[1]}" if line else path
        raise ConfigError(f"{where}: this is not TOML: {_ERROR_LINE.sub('', str(error)).strip()}") from None
    offsets, found = offsets_of(text), list[Statement]()
    for place, value in _flat(document, ()):
        found.append(Statement(".".join(place), value, line_at(text, offset_of(place, offsets))))
    return found


def _flat(table: Mapping[str, object], before: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], object]]:
    for key, value in table.items():
        # An empty section may still have a wrong name.
        if isinstance(value, dict) and value:
            yield from _flat(value, (*before, key))
        else:
            yield (*before, key), value


COMMAND_LINE = "--set"


@dataclass(frozen=True, slots=True)
class Sources:
    """The file, the environment and the command line; all are read anew each time."""

    file: Path
    environment: Mapping[str, str]
    # Each as NAME=VALUE.
    command_line: Sequence[str] = ()

    def read(self) -> Config:
        """Return the settings in force; raise ConfigError for the first that is wrong."""
        in_file, keys, problems = self._of_file()
        if problems:
            raise problems[0]
        return self._with_overrides(in_file, keys)

    def problems(self) -> list[ConfigError]:
        """Return everything that is wrong in the file, the environment and the command line."""
        try:
            in_file, keys, problems = self._of_file()
        except ConfigError as error:
            return [error]
        try:
            self._with_overrides(in_file, keys)
        except ConfigError as error:
            problems.append(error)
        return problems

    def _of_file(self) -> tuple[dict[str, Given], dict[str, Given], list[ConfigError]]:
        given: dict[str, Given] = {}
        keys: dict[str, Given] = {}
        problems: list[ConfigError] = []
        try:
            text = read_text(self.file)
        except FileNotFoundError:
            text = ""
        except UnicodeDecodeError as error:
            raise ConfigError(f"{self.file} is not UTF-8 text: {error.reason} at byte {error.start}") from None
        except OSError as error:
            raise ConfigError(f"{self.file} cannot be read: {error.strerror}") from None
        for statement in statements(text, str(self.file)):
            where = f"{self.file}:{statement.line}"
            section, _, rest = statement.name.partition(".")
            try:
                if section == KEYS and rest:
                    keys[rest] = _keys(rest, statement.value, where)
                elif statement.name not in SECTIONS or statement.value != {}:
                    given[statement.name] = Given(_checked(statement, where), where)
            except ConfigError as error:
                problems.append(error)
        return given, keys, problems

    def _with_overrides(self, in_file: Mapping[str, Given], keys: Mapping[str, Given]) -> Config:
        given = {**Config().given, **in_file}
        for it in CONFIGURED:
            # An empty variable counts as unset.
            if text := self.environment.get(variable_of(it)):
                given[it.config] = Given(_read(it, text, variable_of(it)), variable_of(it))
        for text in self.command_line:
            name, equals, value = text.partition("=")
            if not equals:
                raise ConfigError(f"{COMMAND_LINE} {text}: write NAME=VALUE, such as {CONFIGURED[0].config}=light")
            if name not in BY_NAME:
                raise ConfigError(f"{COMMAND_LINE} {text}: {_unknown(name)}")
            given[name] = Given(_read(BY_NAME[name], value, f"{COMMAND_LINE} {name}"), COMMAND_LINE)
        return Config(given, keys)


def _checked(statement: Statement, where: str) -> Any:
    setting = BY_NAME.get(statement.name)
    if setting is None:
        raise ConfigError(f"{where}: {_unknown(statement.name)}")
    try:
        return setting.kind.checked(statement.value)
    except ValueError:
        raise ConfigError(
            f"{where}: {statement.name} = {_written(statement.value)}: it has to be {setting.kind.allowed}"
        ) from None


def _read(setting: Setting[Any], text: str, where: str) -> Any:
    try:
        return setting.kind.read(text)
    except ValueError:
        raise ConfigError(f"{where}={text}: {setting.config} has to be {setting.kind.allowed}") from None


def _keys(action: str, value: object, where: str) -> Given:
    keys = [value] if isinstance(value, str) else value
    if isinstance(keys, list) and keys and all(isinstance(key, str) and key for key in keys):
        return Given(tuple(keys), where)
    raise ConfigError(
        f"{where}: {KEYS}.{action} = {_written(value)}: "
        'it has to be a key, such as "x" or "ctrl+x", or a list of at least one key'
    )


def _unknown(name: str) -> str:
    # Loaded here: only a wrong name needs it.
    import difflib

    close = difflib.get_close_matches(name, BY_NAME, 1)
    hint = f"did you mean {close[0]}?" if close else f"the settings are {', '.join(BY_NAME)}, and [{KEYS}]"
    return f"there is no setting {name}; {hint}"


def _written(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return in_file(value) if isinstance(value, str) else str(value)


def change(file: Path, name: str, value: Any) -> None:
    """Set a setting in the file; None removes it, so that the default applies."""
    try:
        with in_turn(file):
            before = read_text(file) if file.exists() else ""
            write_atomically(file, changed(before, name, value, str(file)))
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{file} is not UTF-8 text: correct it first") from None


def changed(text: str, name: str, value: Any, path: str) -> str:
    """Return the text of the file with another value for a setting."""
    # Loaded here: only a change needs it.
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    section, _, key = name.rpartition(".")
    try:
        document = tomlkit.parse(text)
    except TOMLKitError as error:
        raise ConfigError(f"{path} is not TOML: {error}; correct it first") from None
    if section not in document:
        if value is None:
            return text
        document[section] = tomlkit.table()
    table = document[section]
    if not isinstance(table, MutableMapping):
        raise ConfigError(f"{path}: {section} is not a section: correct it first")
    if value is None:
        table.pop(key, None)
    else:
        table[key] = plain(value)
    return tomlkit.dumps(document)
