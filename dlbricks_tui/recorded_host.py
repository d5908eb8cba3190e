"""The recorded host of a demonstration.

In a demonstration, a host that was recorded takes the place of this one: its system, its runtimes and its results are
shown, and nothing is measured.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

NOTHING_IS_MEASURED = "a demonstration measures nothing: quit it, and start `dlbricks` itself"


@dataclass(frozen=True, slots=True)
class RecordedHost:
    """A host as it was when it was recorded."""

    # The network name, on which cached answers of frameworks depend.
    name: str
    # The system as a document of the store.
    system: Mapping[str, Any]
    # The versions of the packages of frameworks.
    versions: Mapping[str, str]
    python: str
    # The date of the recording.
    when: str

    @property
    def origin(self) -> str:
        """The system and the date, in words."""
        return f"recorded on {self.system['name']}, {self.when}"

    def version_of(self, packages: Iterable[str]) -> str | None:
        """Return the version of the first of the packages that the host has."""
        return next((self.versions[package] for package in packages if package in self.versions), None)


_recorded: RecordedHost | None = None


def recorded_host() -> RecordedHost | None:
    """Return the host that takes the place of this one; None outside of demonstrations."""
    return _recorded


def host_name() -> str:
    """Return the network name of this host."""
    return platform.node() if _recorded is None else _recorded.name


@contextmanager
def in_place_of_this_host(host: RecordedHost | None) -> Iterator[None]:
    """Let a recorded host take the place of this one, in all threads of this process; None ends that for a while."""
    global _recorded
    before, _recorded = _recorded, host
    try:
        yield
    finally:
        _recorded = before
