"""The folder of a fleet run: its request, state and events like those of a run, and files that control its hosts."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dlbricks_tui.atomic_write import write_atomically
from dlbricks_tui.fleet.errors import FleetError
from dlbricks_tui.fleet.hosts import HostEntry
from dlbricks_tui.fleet.request import FleetRequest, Question
from dlbricks_tui.runs.request import request_document, request_from
from dlbricks_tui.runs.run_folder import RunFolder, RunFolders

_SCHEMA = 1


class FleetFolder(RunFolder):
    """The files of a fleet run. While `pause` exists no host measures."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        # The hosts that are paused, one file each, and those that joined later, one entry a line.
        self._paused = path / "paused"
        self._added = path / "added.jsonl"
        self._cancelled = path / "cancelled"
        # What the workers on the hosts narrate.
        self.logs = path / "logs"

    def pause_host(self, host: str) -> None:
        """Ask the driver to pause a host."""
        self._mark(self._paused, host)

    def unpause_host(self, host: str) -> None:
        """Ask the driver to let a host go on."""
        with suppress(OSError):
            (self._paused / _file_name(host)).unlink(missing_ok=True)

    def cancel_host(self, host: str) -> None:
        """Ask the driver to give a host no more work; what it has measured is kept."""
        self._mark(self._cancelled, host)

    def paused(self, host: str) -> bool:
        """Return true if a host is to pause, alone or with all others."""
        return self.pause_file.exists() or (self._paused / _file_name(host)).exists()

    def cancelled(self, host: str) -> bool:
        return (self._cancelled / _file_name(host)).exists()

    def add_hosts(self, hosts: Sequence[HostEntry]) -> None:
        """Ask the driver to measure on more hosts."""
        try:
            with self._added.open("a") as file:
                for host in hosts:
                    file.write(json.dumps(asdict(host)) + "\n")
        except OSError as error:
            raise FleetError(f"cannot write {self._added}: {error.strerror}") from error

    def added_hosts(self) -> tuple[HostEntry, ...]:
        """Return the hosts that were added while it runs, in order."""
        try:
            lines = self._added.read_text().splitlines()
        except OSError:
            return ()
        found = []
        for line in lines:
            # A line that is still being written is read the next time.
            with suppress(ValueError, TypeError):
                found.append(HostEntry(**json.loads(line)))
        return tuple(found)

    def _mark(self, folder: Path, host: str) -> None:
        self._require_active("pause or cancel")
        try:
            folder.mkdir(exist_ok=True)
            (folder / _file_name(host)).touch()
        except OSError as error:
            raise FleetError(f"cannot write {folder}: {error.strerror}") from error


class FleetFolders(RunFolders):
    """The folders of all fleet runs of a data folder."""

    KIND = "fleet run"
    LISTED_BY = "dlbricks fleet list"

    def create_for(self, request: FleetRequest) -> FleetFolder:
        """Create the folder of a new fleet run, with its request."""
        folder = FleetFolder(self.create(request.run.model_names).path)
        write_fleet_request(folder.request_file, request)
        return folder

    def find_fleet(self, wanted: str) -> FleetFolder:
        """Find a fleet run by its id, by the beginning of its id, or as `last`."""
        return FleetFolder(self.find(wanted).path)


def _file_name(host: str) -> str:
    """Return a file name for a host, whose own name may have any characters."""
    return host.encode().hex() or "-"


def write_fleet_request(path: Path, request: FleetRequest) -> None:
    """Write the request of a fleet run."""
    document = {
        "schema": _SCHEMA,
        "run": request_document(request.run),
        "hosts": [asdict(host) for host in request.hosts],
        "scheduler": request.scheduler,
        "question": request.question.value,
        "probe_seconds": request.probe_seconds,
        "allow_plain": request.allow_plain,
    }
    try:
        write_atomically(path, json.dumps(document, indent=2) + "\n")
    except OSError as error:
        raise FleetError(
            f"cannot write {path}: {error.strerror}; make it writable, or choose another data folder"
        ) from error


def read_fleet_request(path: Path) -> FleetRequest:
    """Return the request of a fleet run."""
    try:
        document = json.loads(path.read_bytes())
        if document["schema"] == _SCHEMA:
            return _request_from(document)
    except OSError as error:
        raise FleetError(f"cannot read {path}: {error.strerror}; start a new fleet run") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FleetError(f"{path} is no request of a fleet run ({error!r}); start a new one") from error
    raise FleetError(f"{path} was written by another version of dlbricks; start a new fleet run")


def _request_from(document: Mapping[str, Any]) -> FleetRequest:
    return FleetRequest(
        run=request_from(document["run"]),
        hosts=tuple(HostEntry(**host) for host in document["hosts"]),
        scheduler=str(document["scheduler"]),
        question=Question(document["question"]),
        probe_seconds=float(document["probe_seconds"]),
        allow_plain=bool(document["allow_plain"]),
    )
