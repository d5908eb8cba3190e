"""The ways in which the attack damages a file."""

import json
import os
import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

_DEEP = 200_000


def flip_a_bit(path: Path, place: float = 0.5, bit: int = 4) -> None:
    """Change one bit at a place between the begin and the end."""
    content = bytearray(path.read_bytes())
    content[int(place * len(content))] ^= 1 << bit
    path.write_bytes(content)


def truncate(path: Path, place: float = 0.5) -> None:
    """Cut the file off at a place between the begin and the end."""
    os.truncate(path, int(place * path.stat().st_size))


def change_types(path: Path) -> None:
    """Give each field of each JSON object another type; a file of another kind becomes a number."""
    try:
        lines = path.read_bytes().splitlines() if path.suffix == ".jsonl" else [path.read_bytes()]
        changed = [json.dumps(_of_another_type(json.loads(line))) for line in lines]
    except ValueError:
        changed = ["7"]
    path.write_text("\n".join(changed) + "\n")


def _of_another_type(value: Any) -> Any:
    return {name: _other(held) for name, held in value.items()} if isinstance(value, dict) else _other(value)


def _other(value: Any) -> Any:
    others: Mapping[type, Any] = {str: 7, int: ["seven"], float: ["seven"], list: {"seven": 7}, dict: [None]}
    return others.get(type(value), "yes")


def in_its_place(put: Callable[[Path], object]) -> Callable[[Path], None]:
    """Return a way to put something else in the place of the file."""

    def damage(path: Path) -> None:
        path.unlink()
        put(path)

    return damage


Ways = Mapping[str, Callable[[Path], object]]
WAYS: Ways = {
    "a flipped bit": flip_a_bit,
    "a half": truncate,
    # As a full disk and a loss of power may do.
    "an empty file": lambda path: path.write_bytes(b""),
    "null bytes": lambda path: path.write_bytes(bytes(max(path.stat().st_size, 8))),
    "bytes that are no text": lambda path: path.write_bytes(b"\xff\xfe\xfd\xfc\xfb\xfa"),
    # Deeper than any parser goes.
    "deep nesting": lambda path: path.write_bytes(b"[" * _DEEP + b"]" * _DEEP),
    "other types": change_types,
    "a directory": in_its_place(Path.mkdir),
    "a loop of links": in_its_place(lambda path: path.symlink_to(path)),
    # Nobody writes to it.
    "a pipe": in_its_place(os.mkfifo),
    # Root may read everything.
    **({"no permission": lambda path: path.chmod(0)} if os.getuid() else {}),
}

_PLACES = [tenth / 10 for tenth in range(10)]
MORE_WAYS: Ways = {
    **WAYS,
    **{f"a bit flipped at {place:.0%}": partial(flip_a_bit, place=place) for place in _PLACES},
    **{f"the highest bit flipped at {place:.0%}": partial(flip_a_bit, place=place, bit=7) for place in _PLACES},
    **{f"the first {place:.0%}": partial(truncate, place=place) for place in _PLACES},
}


def remove(path: Path) -> None:
    """Remove anything that `WAYS` leaves in the place of a file."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
