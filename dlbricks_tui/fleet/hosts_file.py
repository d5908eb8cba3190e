"""The hosts file of a fleet: a TOML file with a table `[[host]]` for each host that is reached over SSH.

```toml
[defaults]
user = "ubuntu"
jump = "gateway.example.org"

[[host]]
name = "c7i"
address = "10.0.0.4"
price_per_hour = 0.1785
```
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from dlbricks_tui.evaluations.evaluation import EvaluationError
from dlbricks_tui.evaluations.faults import Fault, Place, key_shown, offset_of, offsets_of, position_at, shown
from dlbricks_tui.evaluations.file import content_of, parsed, shown_path, text_in
from dlbricks_tui.fleet.request import FleetError, HostEntry
from dlbricks_tui.printable import printable

MOST_HOSTS = 10_000
_LONGEST_TEXT = 1000
_LARGEST_PRICE = 100_000
_DEFAULTS, _HOST, _NAME = "defaults", "host", "name"

_HOST_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
# A letter of a host name or address. A dash in front could be taken for an option.
_ADDRESS = re.compile(r"[A-Za-z0-9_:\[\]][A-Za-z0-9._:%\[\]-]{0,252}")
_USER = re.compile(r"[A-Za-z0-9_][^\s:/\\'\"`$;&|<>()*?#!@,]{0,63}(@[A-Za-z0-9.-]+)?")
_HOP = re.compile(rf"({_USER.pattern}@)?[A-Za-z0-9_][A-Za-z0-9._-]{{0,252}}(:[0-9]{{1,5}})?")

_COMMAND = r"[A-Za-z0-9._+][A-Za-z0-9._+-]*"


class HostsFileError(FleetError):
    """A hosts file cannot be used."""


def read_hosts(path: Path) -> tuple[HostEntry, ...]:
    """Return the hosts of a file in its order; raise HostsFileError, one line with line and column, for a fault."""
    wanted = "a hosts file, such as fleet.toml"
    try:
        content = content_of(
            path,
            missing="write a [[host]] table for each host into it",
            wanted=wanted,
            too_large=f"give the path of {wanted}",
        )
        text = text_in(content, shown_path(path))
    except EvaluationError as error:
        raise HostsFileError(str(error)) from None
    return hosts_of(text, shown_path(path), path.absolute().parent)


def hosts_of(text: str, file: str, folder: Path) -> tuple[HostEntry, ...]:
    """Return the hosts of a text. `file` names it in messages; relative paths of keys begin at `folder`."""
    text = text.replace("\r\n", "\n")
    try:
        document = parsed(text, file)
    except EvaluationError as error:
        raise HostsFileError(str(error)) from None
    faults = list(_faults(document, folder))
    if faults:
        offsets = offsets_of(text)
        first = min(faults, key=lambda fault: offset_of(fault.place, offsets))
        where = position_at(text, offset_of(first.place, offsets)).in_words
        raise HostsFileError(f"{file}, {where}: {first.message}")
    defaults = document.get(_DEFAULTS, {})
    return tuple(_entry({**defaults, **table}, folder) for table in document[_HOST])


def _entry(table: Mapping[str, Any], folder: Path) -> HostEntry:
    values = dict(table)
    if values.get("key"):
        values["key"] = str(_key_path(values["key"], folder))
    if values.get("price_per_hour") is not None:
        values["price_per_hour"] = float(values["price_per_hour"])
    return HostEntry(**values)


def _key_path(key: str, folder: Path) -> Path:
    # The driver may run in another folder than the command.
    return folder / Path(key).expanduser()


def _faults(document: Mapping[str, Any], folder: Path) -> Iterator[Fault]:
    for key in document:
        if key not in (_DEFAULTS, _HOST):
            yield Fault((key,), _unknown(key, "tables", (_DEFAULTS, _HOST)))
    defaults = document.get(_DEFAULTS, {})
    if isinstance(defaults, dict):
        yield from _table_faults((_DEFAULTS,), defaults, folder)
    else:
        yield Fault((_DEFAULTS,), "defaults is a table: write [defaults], and its keys below")
    hosts = document.get(_HOST)
    if not isinstance(hosts, list) or not all(isinstance(table, dict) for table in hosts):
        what = "there is no host" if hosts is None else "host is a list of tables"
        yield Fault((_HOST,), f'{what}: write [[host]], with two brackets, and name = "..." below')
        return
    if not hosts or len(hosts) > MOST_HOSTS:
        yield Fault((_HOST,), f"there are {len(hosts)} hosts, and 1 to {MOST_HOSTS:,} can take part")
    names: dict[str, int] = {}
    for number, table in enumerate(hosts):
        yield from _table_faults((_HOST, number), table, folder)
        name = table.get(_NAME)
        if name is None:
            yield Fault((_HOST, number), 'this host has no name: write name = "..." below')
        # Names are compared as file systems may: logs are named after them.
        elif isinstance(name, str) and names.setdefault(name.lower(), number) != number:
            yield Fault((_HOST, number, _NAME), f"another host has the name {shown(name)}: give this one another name")


def _table_faults(place: Place, table: Mapping[str, Any], folder: Path) -> Iterator[Fault]:
    for key, value in table.items():
        if key in (_NAME, "address") and place == (_DEFAULTS,):
            yield Fault((*place, key), f"{key} belongs to one host: write it below [[host]]")
        elif key not in _KEYS:
            yield Fault((*place, key), _unknown(key, "keys", tuple(_KEYS)))
        else:
            wrong = _KEYS[key](value, folder)
            if wrong:
                yield Fault((*place, key), f"{key} = {shown(value)}: {wrong}")


def _unknown(key: str, what: str, known: tuple[str, ...]) -> str:
    close = get_close_matches(key.lower()[:_LONGEST_TEXT], known, 1)
    if close:
        return f"{key_shown(key)} is unknown: did you mean {close[0]}?"
    return f"{key_shown(key)} is unknown: the {what} are {', '.join(known)}"


# A check returns what to do about a wrong value; empty: the value is right.
_Check = Callable[[Any, Path], str]


def _checked(is_right: Callable[[Any], bool], cure: str) -> _Check:
    return lambda value, _: "" if is_right(value) else cure


def _text(pattern: re.Pattern[str], cure: str) -> _Check:
    return _checked(lambda value: isinstance(value, str) and bool(pattern.fullmatch(value)), cure)


def _path(cure: str, command: str = "") -> _Check:
    """Check a path on the host: an absolute one, one in the home folder, or the name of a command, if it may be one."""

    def is_right(value: Any) -> bool:
        return _is_path(value) and (value.startswith(("/", "~/")) or bool(re.fullmatch(command or r"\b", value)))

    return _checked(is_right, cure)


def _is_price(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value) and 0 <= value <= _LARGEST_PRICE


def _is_jump(value: Any) -> bool:
    if not isinstance(value, str) or len(value) > _LONGEST_TEXT:
        return False
    hops = value.split(",")
    return all(_HOP.fullmatch(hop) and int(hop.rpartition(":")[2] if ":" in hop else 1) < 2**16 for hop in hops)


def _key(value: Any, folder: Path) -> str:
    if not _is_path(value):
        return "write the path of a private key, such as ~/.ssh/id_ed25519"
    try:
        path = _key_path(value, folder)
        found = path.is_file()
    except (OSError, RuntimeError, ValueError) as error:
        return f"this path cannot be used ({error})"
    if not found:
        return f"there is no file {printable(str(path))}; correct the path of the private key"
    return "this is the public key; write the path without .pub" if path.suffix == ".pub" else ""


def _is_path(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST_TEXT and value.isprintable()


_KEYS: Mapping[str, _Check] = {
    _NAME: _text(_HOST_NAME, "write up to 63 letters, digits, dots, dashes and underscores; the first no dash or dot"),
    "address": _text(_ADDRESS, "write a host name, an address, or a name of your SSH configuration"),
    "port": _checked(lambda it: type(it) is int and 0 < it < 2**16, "write a whole number from 1 to 65535"),
    "user": _text(_USER, "write the name of a user on the host"),
    "key": _key,
    "jump": _checked(_is_jump, "write [USER@]HOST[:PORT], and a comma between several"),
    "folder": _path("write an absolute path on the host, or one that begins with ~/"),
    "python": _path("write the name of a command on the host, such as python3.12, or an absolute path", _COMMAND),
    "price_per_hour": _checked(_is_price, "write dollars per hour as a number, such as 0.17"),
}
