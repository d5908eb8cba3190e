"""The interpreters with a framework that can run bricks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dlbricks_tui.runtime.errors import WorkerError
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime, Settings
from dlbricks_tui.runtime.traits import ENGINES, TRAITS
from dlbricks_tui.scenarios.loadgen import require_loadgen
from dlbricks_tui.scenarios.scenario import ScenarioError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dlbricks_tui.folders import DataFolder

FRAMEWORKS = (*TRAITS, *ENGINES)


def runtimes_of(data: DataFolder) -> Sequence[Runtime]:
    """Return the runtimes of this host; none is started."""
    registry = Registry(data.path)
    return (*registry.all(), *registry.engines())


def missing_loadgen() -> str:
    """Return what is missing to measure scenarios; empty if nothing is."""
    try:
        require_loadgen()
    except ScenarioError as missing:
        return str(missing)
    return ""


def added_runtime(
    data: DataFolder,
    python: str,
    *,
    name: str | None = None,
    threads: int | None = None,
    environment: tuple[tuple[str, str], ...] = (),
    framework: str | None = None,
    at_once: int = 1,
) -> Runtime:
    """Register an interpreter as a runtime, after a check that it works."""
    return Registry(data.path).add(python, name, Settings(threads, environment), framework, at_once)


def checked_runtimes(data: DataFolder, name: str | None = None) -> tuple[list[Runtime], list[str]]:
    """Start one runtime, or all; return those that work, and a line about each other one."""
    registry = Registry(data.path)
    # A name that no runtime has is an error.
    found = (registry.find_engine(name) or registry.find(name),) if name else (*registry.all(), *registry.engines())
    names = [runtime.name for runtime in found]
    working: list[Runtime] = []
    broken = []
    for each in names:
        try:
            working.append(registry.check(each))
        except WorkerError as error:
            broken.append(f"{each} does not work: {error}")
    return working, broken


def forget_runtime(name: str, data: DataFolder) -> None:
    """Forget a runtime; its results stay."""
    Registry(data.path).remove(name)


def runtime_document(runtime: Runtime) -> dict[str, Any]:
    """Return a runtime as a JSON document."""
    return {
        "name": runtime.name,
        "runtime": runtime.identity,
        "framework": runtime.framework,
        "version": runtime.version,
        "python": runtime.python,
        "python_version": runtime.python_version,
        "threads": runtime.settings.threads,
        "environment": dict(runtime.settings.environment),
    }
