"""The input shapes that a person gave for models whose files do not say them, kept in the data folder."""

import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from dlbricks_tui.atomic_write import in_turn, write_atomically
from dlbricks_tui.models.graph import Shape
from dlbricks_tui.models.library import ModelSource

SHAPES_FILE = "input-shapes.json"
_PIECE_BYTES = 2**20


def _tell_nobody(source: ModelSource, shapes: Mapping[str, Shape]) -> None:
    pass


class ShapeMemory:
    """Shapes by the content of the model file, so that a copy or a renamed file finds them too.

    It is a convenience: if its file cannot be read or written, shapes have to be given again.
    """

    def __init__(self, data: Path, tell: Callable[[ModelSource, Mapping[str, Shape]], None] = _tell_nobody) -> None:
        """`tell` is called once for each model whose remembered shapes are used."""
        self._file = data / SHAPES_FILE
        self._tell = tell
        self._told: set[Path] = set()

    def recall(self, source: ModelSource, names: tuple[str, ...]) -> Mapping[str, Shape] | None:
        """Return the remembered shapes of these inputs; None if one of them is not known."""
        known = self._read()
        # Most people have given no shapes: then the model file need not be read again.
        shapes = known.get(_content_of(source.path), {}) if known else {}
        if not all(name in shapes for name in names):
            return None
        return {name: shapes[name] for name in names}

    def used(self, source: ModelSource, shapes: Mapping[str, Shape]) -> None:
        """Tell that these remembered shapes are used."""
        if source.path not in self._told:
            self._told.add(source.path)
            self._tell(source, shapes)

    def remember(self, source: ModelSource, shapes: Mapping[str, Shape]) -> None:
        """Keep these shapes for the next time that the model is read."""
        with suppress(OSError):
            key = _content_of(source.path)
            if self._read().get(key, {}).items() >= shapes.items():
                return
            with in_turn(self._file):
                known = self._read()
                known[key] = {**known.get(key, {}), **shapes}
                write_atomically(self._file, f"{json.dumps(known, indent=1)}\n")

    def _read(self) -> dict[str, dict[str, Shape]]:
        try:
            document = json.loads(self._file.read_bytes())
            return {
                str(key): {str(name): _shape(axes) for name, axes in shapes.items()} for key, shapes in document.items()
            }
        except (OSError, ValueError, TypeError, AttributeError, RecursionError):
            return {}


def _shape(axes: object) -> Shape:
    if not isinstance(axes, list) or not all(type(axis) is int and axis > 0 for axis in axes):
        raise ValueError("not a shape")
    return tuple(axes)


def _content_of(path: Path) -> str:
    digest = hashlib.sha256()
    with suppress(OSError), path.open("rb") as file:
        while piece := file.read(_PIECE_BYTES):
            digest.update(piece)
    return digest.hexdigest()
