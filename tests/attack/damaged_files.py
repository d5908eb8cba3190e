"""The attack on files: each file of the data folder is damaged in each way, and the commands that read it are run."""

import json
import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from dlbricks_tui.folders import DataFolder
from tests.attack.commands import Outcome, run_command
from tests.attack.damage import remove
from tests.attack.prepared import Target


@dataclass
class Tally:
    """The counts of an attack, and a line for each fault."""

    files: int = 0
    damages: int = 0
    commands: int = 0
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.files} files of the data folder, damaged {self.damages} times: {self.commands} commands, "
            f"{len(self.faults)} faults"
        )


def attack_files(
    data: DataFolder, targets: Iterable[Target], ways: Mapping[str, Callable[[Path], None]], commands: int | None = None
) -> Tally:
    """Damage each target in these ways, and run its first commands on it, or all of them."""
    tally = Tally()
    for target in targets:
        _attack(data, replace(target, commands=target.commands[:commands]), ways, tally)
    return tally


def _attack(data: DataFolder, target: Target, ways: Mapping[str, Callable[[Path], None]], tally: Tally) -> None:
    found = sorted(data.path.glob(target.files))
    if not found:
        tally.faults.append(f"{target.files}: the prepared folder has no such file")
        return
    path = found[0]
    tally.files += 1
    if target.without:
        shutil.rmtree(data.path / target.without)
    content = path.read_bytes()
    sound = {words: run_command(data, words) for words in target.commands}
    tally.faults += [f"{words}, undamaged: {it.fault}" for words, it in sound.items() if it.fault]
    for way, damage in ways.items():
        path.write_bytes(content)
        damage(path)
        tally.damages += 1
        damaged, reads = _state_of(path), _has_form_of(path, content)
        for words, expected in sound.items():
            if target.without:
                shutil.rmtree(data.path / target.without, ignore_errors=True)
            tally.commands += 1
            outcome = run_command(data, words)
            fault = outcome.fault or ("" if reads else _difference(target, path, outcome, expected))
            if fault:
                tally.faults.append(f"{path.relative_to(data.path)} with {way}, `{words}`: {fault}")
        if not (target.is_cache or target.is_written or reads) and _state_of(path) != damaged:
            tally.faults.append(f"{path.relative_to(data.path)} with {way}: a command has changed the damaged file")
        remove(path)
    path.write_bytes(content)


def _has_form_of(path: Path, content: bytes) -> bool:
    """Return whether a damaged file is a JSON document like the sound one, with another text or number in it.

    No reader can tell such damage from a change, so that commands may say and write what follows from it.
    """
    with suppress(OSError, ValueError, RecursionError):
        return path.is_file() and _form(json.loads(path.read_bytes())) == _form(json.loads(content))
    return False


def _form(document: object) -> object:
    if isinstance(document, dict):
        return {key: _form(value) for key, value in document.items()}
    return [_form(it) for it in document] if isinstance(document, list) else type(document)


def _difference(target: Target, path: Path, outcome: Outcome, sound: Outcome) -> str:
    """Return the fault of an outcome on a damaged file, beside that on the sound one."""
    if (outcome.status, outcome.out) == (sound.status, sound.out):
        return "" if outcome.told == sound.told or not target.is_cache else f"it tells of a cache: {outcome.told}"
    if target.is_cache:
        return f"its output changes with a cache: status {outcome.status}, {outcome.told.strip()[:300]}"
    named = (path.name, path.parent.name)
    if not target.forgives and not target.is_written and not any(it in outcome.told + outcome.out for it in named):
        return f"it does not name the file: status {outcome.status}, {outcome.told.strip()[:300]}"
    return ""


def _state_of(path: Path) -> tuple[int, bytes]:
    """Return the kind and the content of a file."""
    mode = path.lstat().st_mode
    return mode, path.read_bytes() if path.is_file() else b""
