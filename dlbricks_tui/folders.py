"""The folders of dlbricks: the user's data folder, and those that are installed with the package."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dlbricks_tui.errors import UserError

DATA_FOLDER_VARIABLE = "DLBRICKS_DATA_DIR"


def _installed(name: str) -> Path:
    # A wheel has these folders inside the package, a checkout at its top level.
    package = Path(__file__).parent
    packaged = package / name
    return packaged if packaged.is_dir() else package.parent / name


SAMPLE_MODELS = _installed("sample_models")
THEMES = _installed("themes")


class NoHomeFolderError(Exception):
    """No data folder was named, and there is no home folder to derive it from."""


class EmptyDataFolderError(UserError):
    """The name of the data folder is empty."""


@dataclass(frozen=True, slots=True)
class DataFolder:
    """The folder of everything that belongs to the user; nothing is created in it before the first write."""

    path: Path

    @property
    def cache(self) -> Path:
        """Files that can be computed again."""
        return self.path / "cache"

    @property
    def store(self) -> Path:
        """The results."""
        return self.path / "store"

    @property
    def runs(self) -> Path:
        """A folder per run: its request, state and events."""
        return self.path / "runs"

    @property
    def jobs(self) -> Path:
        """A folder per load test, trace, proof and measurement of peaks in progress: its order and its messages."""
        return self.path / "jobs"

    @property
    def scenarios(self) -> Path:
        """A folder per load test: the logs of LoadGen."""
        return self.path / "scenarios"

    @property
    def fleets(self) -> Path:
        """A folder per fleet run: its request, state and events."""
        return self.path / "fleets"

    @property
    def parcels(self) -> Path:
        """The networks that a driver of a fleet has sent to this host, by hash."""
        return self.path / "parcels"

    @property
    def tasks(self) -> Path:
        """A file per task that a driver of a fleet has given to this host: the id of its run."""
        return self.path / "tasks"

    @property
    def certificates(self) -> Path:
        """The certificates and private keys of fleets."""
        return self.path / "certificates"

    @property
    def traces(self) -> Path:
        """A file per trace."""
        return self.path / "traces"

    @property
    def config(self) -> Path:
        """The config file."""
        return self.path / "config.toml"

    @property
    def themes(self) -> Path:
        """The user's own themes."""
        return self.path / "themes"

    @property
    def pictures(self) -> Path:
        """Pictures of screens that were saved."""
        return self.path / "pictures"

    @property
    def view(self) -> Path:
        """The look of the workbench that was used last, and the models that were opened lately."""
        return self.path / "view.json"

    @property
    def copied(self) -> Path:
        """The text that was copied last, for terminals that give no access to the clipboard."""
        return self.path / "copied.txt"

    @property
    def allowed_signers(self) -> Path:
        """The trusted signers of files of results, in OpenSSH's format."""
        return self.path / "allowed_signers"

    @property
    def minisign_keys(self) -> Path:
        """The public keys of trusted signers for minisign: `NAME.pub`."""
        return self.path / "minisign"

    @property
    def log(self) -> Path:
        """Tracebacks and the output of workers."""
        return self.path / "log"


def data_folder(chosen: str | None = None, environment: Mapping[str, str] = os.environ) -> DataFolder:
    """Return the folder from the command line, else from the environment, else the platform's folder for data.

    An empty name is an error: a shell has put an unset variable there, and the user's own results are not meant.
    """
    named = environment.get(DATA_FOLDER_VARIABLE) if chosen is None else chosen
    if named is not None and not named.strip():
        raise EmptyDataFolderError(
            f"{DATA_FOLDER_VARIABLE if chosen is None else '--data-dir'} is empty: name a folder, or leave it out for "
            "the usual one"
        )
    # Absolute: workers and runs have working folders of their own.
    return DataFolder((_default_folder() if named is None else _expanded(named)).absolute())


def _default_folder() -> Path:
    # Loaded here: a command with --data-dir does without.
    from platformdirs import user_data_path

    try:
        folder = user_data_path("dlbricks", appauthor=False)
    except RuntimeError as error:
        raise NoHomeFolderError("~") from error
    # Older versions of platformdirs take a relative XDG_DATA_HOME, and do not object to a missing home folder.
    return folder if folder.is_absolute() else _expanded("~/.local/share/dlbricks")


def _expanded(path: str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise NoHomeFolderError(path) from error
