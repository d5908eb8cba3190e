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


class _Inside:
    """A file or folder in the data folder, by its name there."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, folder: "DataFolder", _: type) -> Path:
        return folder.path / self._name


@dataclass(frozen=True, slots=True)
class DataFolder:
    """The folder of everything that belongs to the user; nothing is created in it before the first write."""

    path: Path

    # Files that can be computed again.
    cache = _Inside("cache")
    # The results.
    store = _Inside("store")
    # A folder per run: its request, state and events.
    runs = _Inside("runs")
    # A folder per load test, trace, proof and measurement of peaks in progress: its order and its messages.
    jobs = _Inside("jobs")
    # A folder per load test: the logs of LoadGen.
    scenarios = _Inside("scenarios")
    # A folder per fleet run: its request, state and events.
    fleets = _Inside("fleets")
    # The networks that a driver of a fleet has sent to this host, by hash.
    parcels = _Inside("parcels")
    # A file per task that a driver of a fleet has given to this host: the id of its run.
    # The certificates and private keys of fleets.
    certificates = _Inside("certificates")
    # A file per trace.
    traces = _Inside("traces")
    # The config file.
    config = _Inside("config.toml")
    # The user's own themes.
    themes = _Inside("themes")
    # Pictures of screens that were saved.
    pictures = _Inside("pictures")
    # The look of the workbench that was used last, and the models that were opened lately.
    view = _Inside("view.json")
    # The text that was copied last, for terminals that give no access to the clipboard.
    copied = _Inside("copied.txt")
    # The trusted signers of files of results, in OpenSSH's format.
    allowed_signers = _Inside("allowed_signers")
    # The public keys of trusted signers for minisign: `NAME.pub`.
    minisign_keys = _Inside("minisign")
    # Tracebacks and the output of workers.
    log = _Inside("log")


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
