"""Settings from all who may give them: the command line over the environment over the file over the defaults."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dlbricks_tui.config.config import Config, Given, KeysGiven
from dlbricks_tui.config.document import Statement, statements
from dlbricks_tui.config.errors import ConfigError
from dlbricks_tui.config.option import NotAllowedError, Option, Value
from dlbricks_tui.config.options import BY_NAME, KEYS, OPTIONS, SECTIONS, shown

COMMAND_LINE = "--set"


@dataclass(frozen=True, slots=True)
class Sources:
    """Who may give settings; what they say is read anew each time."""

    file: Path
    environment: Mapping[str, str]
    # Each as NAME=VALUE.
    command_line: Sequence[str] = ()

    def read(self) -> Config:
        """The settings as they count now; raises the first that is wrong."""
        in_file, keys, problems = self._of_file()
        if problems:
            raise problems[0]
        return self._with_overrides(in_file, keys)

    def problems(self) -> list[ConfigError]:
        """All that is wrong, in the file and beside it."""
        try:
            in_file, keys, problems = self._of_file()
        except ConfigError as error:
            return [error]
        try:
            self._with_overrides(in_file, keys)
        except ConfigError as error:
            problems.append(error)
        return problems

    def _of_file(self) -> tuple[dict[str, Given], dict[str, KeysGiven], list[ConfigError]]:
        given: dict[str, Given] = {}
        keys: dict[str, KeysGiven] = {}
        problems: list[ConfigError] = []
        for said in statements(self._text(), str(self.file)):
            where = f"{self.file}:{said.line}"
            section, _, rest = said.name.partition(".")
            try:
                if section == KEYS and rest:
                    keys[rest] = _keys(rest, said.value, where)
                elif said.name not in SECTIONS or said.value != {}:
                    given[said.name] = Given(_checked(said, where), where)
            except ConfigError as error:
                problems.append(error)
        return given, keys, problems

    def _with_overrides(self, in_file: Mapping[str, Given], keys: Mapping[str, KeysGiven]) -> Config:
        # One that is empty counts as none, as is the habit with variables.
        stated = {it.name: it.variable for it in OPTIONS if self.environment.get(it.variable)}
        variables = {
            name: Given(_read(BY_NAME[name], self.environment[variable], variable), variable)
            for name, variable in stated.items()
        }
        chosen = dict(_of_command_line(text) for text in self.command_line)
        defaults = {option.name: Given(option.default) for option in OPTIONS}
        return Config({**defaults, **in_file, **variables, **chosen}, keys)

    def _text(self) -> str:
        try:
            return self.file.read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""
        except UnicodeDecodeError as error:
            raise ConfigError(f"{self.file} is not UTF-8 text: {error.reason} at byte {error.start}") from None
        except OSError as error:
            raise ConfigError(f"{self.file} cannot be read: {error.strerror}") from None


def _checked(said: Statement, where: str) -> Value:
    option = BY_NAME.get(said.name)
    if option is None:
        raise ConfigError(f"{where}: {_unknown(said.name)}")
    try:
        return option.kind.checked(said.value)
    except NotAllowedError:
        raise ConfigError(
            f"{where}: {said.name} = {_written(said.value)}: it has to be {option.kind.allowed}"
        ) from None


def _read(option: Option, text: str, where: str) -> Value:
    try:
        return option.kind.read(text)
    except NotAllowedError:
        raise ConfigError(f"{where}={text}: {option.name} has to be {option.kind.allowed}") from None


def _of_command_line(text: str) -> tuple[str, Given]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(f"{COMMAND_LINE} {text}: write NAME=VALUE, such as {OPTIONS[0].name}=light")
    if name not in BY_NAME:
        raise ConfigError(f"{COMMAND_LINE} {text}: {_unknown(name)}")
    return name, Given(_read(BY_NAME[name], value, f"{COMMAND_LINE} {name}"), COMMAND_LINE)


def _keys(action: str, value: object, where: str) -> KeysGiven:
    keys = [value] if isinstance(value, str) else value
    if isinstance(keys, list) and keys and all(isinstance(key, str) and key for key in keys):
        return KeysGiven(tuple(keys), where)
    raise ConfigError(
        f"{where}: {KEYS}.{action} = {_written(value)}: "
        'it has to be a key, such as "x" or "ctrl+x", or a list of keys with at least one in it'
    )


def _unknown(name: str) -> str:
    close = difflib.get_close_matches(name, BY_NAME, 1)
    perhaps = f"did you mean {close[0]}?" if close else f"there are {', '.join(BY_NAME)}, and [{KEYS}]"
    return f"there is no setting {name}; {perhaps}"


def _written(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return shown(value) if isinstance(value, str) else str(value)
