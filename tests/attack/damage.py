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


def empty(path: Path) -> None:
    """Remove the content, as a full disk may do."""
    os.truncate(path, 0)


def no_text(path: Path) -> None:
    """Replace the content by bytes that are no text."""
    path.write_bytes(b"\xff\xfe\xfd\xfc\xfb\xfa")


def nulls(path: Path) -> None:
    """Replace the content by null bytes, as a loss of power may do."""
    path.write_bytes(bytes(max(path.stat().st_size, 8)))


def nest(path: Path) -> None:
    """Write JSON that nests deeper than any parser goes."""
    path.write_bytes(b"[" * _DEEP + b"]" * _DEEP)


def change_types(path: Path) -> None:
    """Give each field of each JSON object another type; a file of another kind becomes a number."""
    try:
        lines = path.read_bytes().splitlines() if path.suffix == ".jsonl" else [path.read_bytes()]
        changed = [json.dumps(_of_another_type(json.loads(line))) for line in lines]
    except ValueError:
        changed = ["7"]
    path.write_text("\n".join(changed) + "\n")


def _of_another_type(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _other(held) for name, held in value.items()}
    return _other(value)


def _other(value: Any) -> Any:
    match value:
        case bool() | None:
            return "yes"
        case str():
            return 7
        case int() | float():
            return ["seven"]
        case list():
            return {"seven": 7}
        case _:
            return [None]


def put_a_directory(path: Path) -> None:
    """Put a directory in the place of the file."""
    path.unlink()
    path.mkdir()


def put_a_loop(path: Path) -> None:
    """Put a link to itself in the place of the file."""
    path.unlink()
    path.symlink_to(path)


def put_a_pipe(path: Path) -> None:
    """Put a named pipe, which nobody writes to, in the place of the file."""
    path.unlink()
    os.mkfifo(path)


def forbid(path: Path) -> None:
    """Take all permissions away."""
    path.chmod(0)


WAYS: Mapping[str, Callable[[Path], None]] = {
    "a flipped bit": flip_a_bit,
    "a half": truncate,
    "an empty file": empty,
    "null bytes": nulls,
    "bytes that are no text": no_text,
    "deep nesting": nest,
    "other types": change_types,
    "a directory": put_a_directory,
    "a loop of links": put_a_loop,
    "a pipe": put_a_pipe,
    # Root may read everything.
    **({"no permission": forbid} if os.getuid() else {}),
}

_PLACES = [tenth / 10 for tenth in range(10)]
MORE_WAYS: Mapping[str, Callable[[Path], None]] = {
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
