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

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dlbricks_tui.evaluations.evaluation import EvaluationError, Schema
from dlbricks_tui.evaluations.faults import Fault, shown
from dlbricks_tui.evaluations.file import content_of, parsed, shown_path, text_in, without_faults
from dlbricks_tui.evaluations.validation import faults_of
from dlbricks_tui.fleet.request import FleetError, HostEntry
from dlbricks_tui.printable import printable

_DEFAULTS, _HOST = "defaults", "host"
_MOST_HOSTS = 10_000
_USER = r"[A-Za-z0-9_][^\s:/\\'\"`$;&|<>()*?#!@,]{0,63}(@[A-Za-z0-9.-]+)?"
_PORT = r"([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
_HOP = rf"({_USER}@)?([A-Za-z0-9_][A-Za-z0-9._-]{{0,252}}|\[[0-9A-Fa-f:.]+\])(:{_PORT})?"
# A path on the host: an absolute one, or one in the home folder.
_PATH = r"(/|~/)[^\u0000-\u001f\u007f-\u00a0]*"
_COMMAND = r"[A-Za-z0-9._+][A-Za-z0-9._+-]*"


def _text(pattern: str, says: str) -> Schema:
    return {"type": "string", "maxLength": 1000, "pattern": f"^({pattern})$", "patternErrorMessage": says}


_KEYS: Mapping[str, Schema] = {
    "name": _text(
        "[A-Za-z0-9][A-Za-z0-9._-]{0,62}",
        "up to 63 letters, digits, dots, dashes and underscores; the first no dash or dot",
    ),
    # A dash in front could be taken for an option.
    "address": _text(
        r"[A-Za-z0-9_:\[\]][A-Za-z0-9._:%\[\]-]{0,252}", "a host name, an address, or a name of your SSH configuration"
    ),
    "port": {"type": "integer", "minimum": 1, "maximum": 65535, "patternErrorMessage": "a number from 1 to 65535"},
    "user": _text(_USER, "the name of a user on the host"),
    "key": _text(".+", "the path of a private key, such as ~/.ssh/id_ed25519"),
    "jump": _text(rf"{_HOP}(,{_HOP})*", "[USER@]HOST[:PORT], and a comma between several"),
    "folder": _text(_PATH, "an absolute path on the host, or one that begins with ~/"),
    "python": _text(
        f"{_PATH}|{_COMMAND}", "the name of a command on the host, such as python3.12, or an absolute path"
    ),
    "price_per_hour": {
        "type": "number",
        "minimum": 0,
        "maximum": 100_000,
        "patternErrorMessage": "dollars per hour as a number, such as 0.17",
    },
}


def _table(required: tuple[str, ...], keys: Mapping[str, Schema]) -> Schema:
    return {"type": "object", "required": list(required), "additionalProperties": False, "properties": keys}


_SCHEMA = _table(
    (_HOST,),
    {
        _DEFAULTS: _table((), {name: it for name, it in _KEYS.items() if name not in ("name", "address")}),
        _HOST: {"type": "array", "minItems": 1, "maxItems": _MOST_HOSTS, "items": _table(("name",), _KEYS)},
    },
)


def read_hosts(path: Path) -> tuple[HostEntry, ...]:
    """Return the hosts of a file in its order; raise FleetError, one line with line and column, for a fault."""
    wanted = "a hosts file, such as hosts.toml"
    try:
        content = content_of(
            path,
            missing="write a [[host]] table for each host into it",
            wanted=wanted,
            too_large=f"give the path of {wanted}",
        )
        text = text_in(content, shown_path(path))
    except EvaluationError as error:
        raise FleetError(str(error)) from None
    return hosts_of(text, shown_path(path), path.absolute().parent)


def hosts_of(text: str, file: str, folder: Path) -> tuple[HostEntry, ...]:
    """Return the hosts of a text. `file` names it in messages; relative paths of keys begin at `folder`."""
    text = text.replace("\r\n", "\n")
    try:
        document = parsed(text, file)
        without_faults(faults_of(document, _SCHEMA) or list(_broken_rules(document, folder)), text, file)
    except EvaluationError as error:
        raise FleetError(str(error)) from None
    return tuple(_entry({**document.get(_DEFAULTS, {}), **table}, folder) for table in document[_HOST])


def _entry(table: Mapping[str, Any], folder: Path) -> HostEntry:
    values = dict(table)
    if "key" in values:
        values["key"] = str(_key_path(values["key"], folder))
    if "price_per_hour" in values:
        values["price_per_hour"] = float(values["price_per_hour"])
    return HostEntry(**values)


def _key_path(key: str, folder: Path) -> Path:
    # The driver may run in another folder than the command.
    return folder / Path(key).expanduser()


def _broken_rules(document: Mapping[str, Any], folder: Path) -> Iterator[Fault]:
    """Yield what the schema allows and no host can have."""
    tables = [((_HOST, number), table) for number, table in enumerate(document[_HOST])]
    names: dict[str, int] = {}
    for (_, number), table in tables:
        # Names are compared as file systems may: logs are named after them.
        if names.setdefault((name := table["name"]).lower(), number) != number:
            yield Fault((_HOST, number, "name"), f"another host has the name {shown(name)}: give this one another name")
    for place, table in ((_DEFAULTS,), document.get(_DEFAULTS, {})), *tables:
        if "key" in table and (wrong := _wrong_key(table["key"], folder)):
            yield Fault((*place, "key"), f"key = {shown(table['key'])}: {wrong}")


def _wrong_key(key: str, folder: Path) -> str:
    try:
        path = _key_path(key, folder)
        found = path.is_file()
    except (OSError, RuntimeError, ValueError) as error:
        return f"this path cannot be used ({printable(str(error))})"
    if not found:
        return f"there is no file {printable(str(path))}; correct the path of the private key"
    return "this is the public key; write the path without .pub" if path.suffix == ".pub" else ""
