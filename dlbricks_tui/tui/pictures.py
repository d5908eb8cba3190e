"""Pictures of the screen as files."""

from datetime import datetime
from pathlib import Path

from dlbricks_tui.atomic_write import write_atomically
from dlbricks_tui.errors import UserError
from dlbricks_tui.settings import DataFolder


class PictureError(UserError):
    """A picture could not be kept."""


def save_picture(svg: str, data: DataFolder) -> Path:
    """Keeps the picture under a name of its own, and returns where."""
    taken = datetime.now().astimezone().strftime("%Y-%m-%d-%H%M%S")
    path = data.pictures / f"dlbricks-{taken}.svg"
    try:
        write_atomically(path, svg)
    except OSError as error:
        raise PictureError(f"{path} cannot be written: {error.strerror}") from None
    return path
