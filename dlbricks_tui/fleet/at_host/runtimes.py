"""The runtimes of a host, and the one among them that a request means."""

from collections.abc import Iterable
from dataclasses import replace

from dlbricks_tui.fleet.errors import HostError
from dlbricks_tui.fleet.messages import RuntimeReport
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.runtime.registry import NOT_INSTALLED, Registry
from dlbricks_tui.runtime.runtime import UNTUNED, Runtime


def runtimes_here(data: DataFolder) -> tuple[Runtime, ...]:
    """Return the installed runtimes, without settings of the shell: processes of dask have some for their own sake."""
    return tuple([replace(it, settings=UNTUNED) for it in Registry(data.path).all() if it.version != NOT_INSTALLED])


def runtime_here(data: DataFolder, requested: Runtime) -> Runtime:
    """Return the runtime of this host with the framework, version and settings of the requested one."""
    here = runtimes_here(data)
    found = next((it for it in here if _names(it) == _names(requested)), None)
    if found is None:
        there = ", ".join(f"{it.framework} {it.version}" for it in here) or "none"
        raise HostError(
            f"this host has no {requested.framework} {requested.version}; its frameworks are {there}: "
            "install the same version as at home"
        )
    return replace(found, settings=requested.settings)


def identity_there(requested: Runtime, reports: Iterable[RuntimeReport]) -> str | None:
    """Return the identity that the requested runtime has on a host; None if the host lacks its framework or version.

    It differs from that at home if the host has another version of Python.
    """
    for report in reports:
        if (report.framework, report.version) == _names(requested):
            python = next((it for it in report.identity.split(" ") if it.startswith("python-")), "python-")
            return replace(requested, python_version=python.removeprefix("python-")).identity
    return None


def _names(runtime: Runtime) -> tuple[str, str]:
    return runtime.framework, runtime.version
