"""The runtimes of a host, and the one among them that a request means."""

from dataclasses import replace

from dlbricks_tui.fleet.errors import HostError
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.recorded_host import processors_here
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
    return replace(found, settings=requested.settings).on(processors_here())


def _names(runtime: Runtime) -> tuple[str, str]:
    return runtime.framework, runtime.version
