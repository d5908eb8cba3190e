"""The settings of the estimate as rows that are changed on the spot."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

from dlbricks_tui.bricks.cutting import Cut
from dlbricks_tui.bricks.ordering import Order
from dlbricks_tui.models.graph import Level
from dlbricks_tui.tui.choices import Available, Choices, next_of

THIS_HOST = "this host"
ANY_RUNTIME = "best covered"
NONE_AVAILABLE = Available("", (), (), 0)


class Setting(Enum):
    """What can be set, in the order of the rows."""

    GRANULARITY = "granularity"
    LEVEL = "level"
    CUT = "cut"
    ORDER = "order"
    WORKERS = "workers"
    SYSTEM = "system"
    RUNTIME = "runtime"


@dataclass(frozen=True, slots=True)
class _Row:
    shown: Callable[[Choices, Available], str]
    changed: Callable[[Choices, Available, int], Choices]


def shown(setting: Setting, choices: Choices, available: Available) -> str:
    """The value of a setting in words."""
    return _ROWS[setting].shown(choices, available)


def changed(setting: Setting, choices: Choices, available: Available, step: int) -> Choices:
    """The choices with a setting at its next value, or (step -1) at the one before."""
    return _ROWS[setting].changed(choices, available, step)


def _system(choices: Choices, available: Available) -> str:
    if choices.system is None:
        return THIS_HOST
    return next((it.name for it in available.systems if it.id == choices.system), choices.system)


def _next_system(choices: Choices, available: Available, step: int) -> Choices:
    others = (it.id for it in available.systems if it.id != available.host)
    # What one system has is no help on another.
    return replace(choices, system=next_of((None, *others), choices.system, step), runtime=None)


def _runtime(choices: Choices, available: Available) -> str:
    if choices.runtime is None:
        return ANY_RUNTIME
    return next((it.name for it in available.runtimes if it.id == choices.runtime), choices.runtime)


def _next_runtime(choices: Choices, available: Available, step: int) -> Choices:
    return replace(choices, runtime=next_of((None, *(it.id for it in available.runtimes)), choices.runtime, step))


_ROWS = {
    Setting.GRANULARITY: _Row(
        lambda choices, _: f"{choices.granularity}",
        lambda choices, _, step: choices.with_granularity(choices.granularity + step),
    ),
    Setting.LEVEL: _Row(
        lambda choices, _: choices.level.value,
        lambda choices, _, step: replace(choices, level=next_of(tuple(Level), choices.level, step)),
    ),
    Setting.CUT: _Row(
        lambda choices, _: choices.cut.value,
        lambda choices, _, step: replace(choices, cut=next_of(tuple(Cut), choices.cut, step)),
    ),
    Setting.ORDER: _Row(
        lambda choices, _: choices.order.value,
        lambda choices, _, step: replace(choices, order=next_of(tuple(Order), choices.order, step)),
    ),
    Setting.WORKERS: _Row(
        lambda choices, _: f"{choices.workers}",
        lambda choices, _, step: choices.with_workers(choices.workers + step),
    ),
    Setting.SYSTEM: _Row(_system, _next_system),
    Setting.RUNTIME: _Row(_runtime, _next_runtime),
}
