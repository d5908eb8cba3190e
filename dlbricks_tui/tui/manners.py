"""How the workbench behaves towards the connection: over a slow one it writes less and more seldom."""

from collections.abc import Mapping
from dataclasses import dataclass

from dlbricks_tui.config.config import Config
from dlbricks_tui.config.options import AUTO, ON

_SIGNS_OF_SSH = ("SSH_TTY", "SSH_CONNECTION")


@dataclass(frozen=True, slots=True)
class Manners:
    """What a connection can bear."""

    mouse: bool = True
    # Whether to leave out of what is drawn what stands there already, which costs a little time for each repaint.
    frugal: bool = False
    repaints_per_second: int = 60
    # How many times longer than usual to wait between two looks at a run.
    rarely: float = 1.0


def manners(config: Config, environment: Mapping[str, str]) -> Manners:
    """As the settings have it, else by whether the terminal is a remote one."""
    automatic = config.remote == AUTO and any(environment.get(name) for name in _SIGNS_OF_SSH)
    remote = config.remote == ON or automatic
    mouse = config.mouse == ON or (config.mouse == AUTO and not remote)
    return Manners(mouse, True, 15, 4.0) if remote else Manners(mouse)
