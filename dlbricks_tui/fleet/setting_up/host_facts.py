"""The facts about a host that the doctor asks for: the script that it sends, and the checked answer."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dlbricks_tui.fleet.errors import FleetError
from dlbricks_tui.fleet.setting_up import host_check
from dlbricks_tui.printable import printable
from dlbricks_tui.untrusted_json import check_fields, parsed_document

_FIELDS: Mapping[str, type] = {
    **dict.fromkeys(("python", "implementation", "executable", "operating_system", "machine", "libc", "cpu"), str),
    **dict.fromkeys(("vectors", "measuring", "folder", "obstacle", "interpreter", "environment_python"), str),
    **dict.fromkeys(("dlbricks", "content"), str),
    **dict.fromkeys(("cores", "busy_permille", "stolen_permille", "free_memory", "free_disk"), int),
    **dict.fromkeys(("clock_first", "clock_last"), int),
    **dict.fromkeys(("others", "governors"), list),
    **dict.fromkeys(("makes_environments", "replaceable"), bool),
    "packages": dict,
}
_MOST_CHARACTERS = 4096
_MOST_ENTRIES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """Facts about a host. Texts are empty and numbers None if the host cannot tell."""

    python: str
    implementation: str
    executable: str
    # The names of other interpreters there, such as python3.12.
    others: tuple[str, ...]
    # The interpreter can make environments with pip in them.
    makes_environments: bool
    operating_system: str
    machine: str
    libc: str
    cpu: str
    cores: int
    vectors: str
    governors: tuple[str, ...]
    busy: float | None
    stolen: float | None
    free_memory: int | None
    # The run that holds the lock of the host.
    measuring: str
    # The absolute path of its folder, and the reason why it cannot be written to.
    folder: str
    obstacle: str
    free_disk: int
    # The environment is one that `--install` has made, or there is none.
    replaceable: bool
    # The interpreter of the environment, and what is installed in it.
    interpreter: str
    environment_python: str
    dlbricks: str
    content: str
    packages: Mapping[str, str]
    # The time there when the script began and when it ended, in milliseconds since 1970.
    clock_first: int
    clock_last: int


def script(module: Any, function: str, *arguments: object, **options: object) -> bytes:
    """Return a module of this package as a program for another interpreter, which calls one of its functions."""
    literals = [f"json.loads({json.dumps(each)!r})" for each in arguments]
    literals += [f"{name}=json.loads({json.dumps(each)!r})" for name, each in options.items()]
    called = ", ".join(literals)
    return (Path(module.__file__).read_text(encoding="utf-8") + f"\n\n{function}({called})\n").encode()


def answer_in(output: bytes) -> bytes:
    """Return the last line of what a program has printed; the files of a shell may print others before it."""
    return output.strip().rpartition(b"\n")[2]


def facts_script(folder: str, packages: Sequence[str]) -> bytes:
    """Return the program that prints the facts about a host."""
    return script(host_check, "tell", folder, list(packages))


def facts_from(output: bytes) -> HostFacts:
    """Return the facts that a host has printed; raise FleetError unless they are what the program prints."""
    try:
        document = parsed_document(answer_in(output), host_check.FORMAT, host_check.SCHEMA)
        check_fields(document, _FIELDS)
        for name, value in document.items():
            document[name] = _checked(name, value)
    except ValueError as error:
        raise FleetError(f"its answer to the doctor {error}; check what this host is") from error
    busy, stolen = document.pop("busy_permille"), document.pop("stolen_permille")
    memory = document.pop("free_memory")
    return HostFacts(**document, busy=_share(busy), stolen=_share(stolen), free_memory=None if memory < 0 else memory)


def _checked(name: str, value: Any) -> Any:
    match value:
        case str():
            return _text(name, value)
        case list():
            return tuple(_text(name, each) for each in _bounded(name, value))
        case dict():
            return {_text(name, key): _text(name, each) for key, each in _bounded(name, value).items()}
        case bool():
            return value
        case int():
            if abs(value) >= 1 << 63:
                raise ValueError(f"has a {name} that no host has")
            return value


def _bounded(name: str, value: Any) -> Any:
    if len(value) > _MOST_ENTRIES:
        raise ValueError(f"has more than {_MOST_ENTRIES} entries of {name}")
    return value


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or len(value) > _MOST_CHARACTERS:
        raise ValueError(f"has a {name} that is not a short text")
    return printable(value)


def _share(permille: int) -> float | None:
    return None if permille < 0 else permille / 1000
