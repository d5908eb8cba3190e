"""Where things are: the user's data folder, and what is installed with the package."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

DATA_FOLDER_VARIABLE = "DLBRICKS_DATA_DIR"


def _resource(name: str) -> Path:
    # A wheel carries these folders inside the package, a checkout at its top level.
    package = Path(__file__).parent
    packaged = package / name
    return packaged if packaged.is_dir() else package.parent / name


SAMPLE_MODELS = _resource("sample_models")
THEMES = _resource("themes")


class NoHomeFolderError(Exception):
    """Nobody said where the user's data goes, and there is no home folder to derive it from."""


@dataclass(frozen=True, slots=True)
class DataFolder:
    """The one folder that holds everything of the user; nothing in it is made before it is written to."""

    path: Path

    @property
    def cache(self) -> Path:
        """What can be computed again."""
        return self.path / "cache"

    @property
    def store(self) -> Path:
        """Every result."""
        return self.path / "store"

    @property
    def runs(self) -> Path:
        """A folder for each run: what it was asked, how it stands, what happens in it."""
        return self.path / "runs"

    @property
    def config(self) -> Path:
        """What this person wants to be as they like it."""
        return self.path / "config.toml"

    @property
    def themes(self) -> Path:
        """Themes of this person."""
        return self.path / "themes"

    @property
    def pictures(self) -> Path:
        """Screens that were saved."""
        return self.path / "pictures"

    @property
    def copied(self) -> Path:
        """The text that was copied last, for terminals that let no program at the clipboard."""
        return self.path / "copied.txt"

    @property
    def log(self) -> Path:
        """What went wrong, in full."""
        return self.path / "log"


def data_folder(
    chosen: str | None = None, environment: Mapping[str, str] = os.environ, platform: str = sys.platform
) -> DataFolder:
    """The folder that the command line chose, else the environment, else the platform's own place for data."""
    named = chosen or environment.get(DATA_FOLDER_VARIABLE)
    # Made absolute at once: workers and runs live in folders of their own.
    return DataFolder((_expanded(named) if named else _platform_default(environment, platform)).absolute())


def _platform_default(environment: Mapping[str, str], platform: str) -> Path:
    if platform == "darwin":
        return _expanded("~/Library/Application Support/dlbricks")
    # The XDG specification wants a relative path ignored.
    base = Path(environment.get("XDG_DATA_HOME", ""))
    return (base if base.is_absolute() else _expanded("~/.local/share")) / "dlbricks"


def _expanded(path: str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise NoHomeFolderError(path) from error
