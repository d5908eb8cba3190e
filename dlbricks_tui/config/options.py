"""The settings: what each may be, its default, and what it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

# A single value in TOML; None: the setting is open.
Value = str | int | float | None


@dataclass(frozen=True, slots=True)
class ValueKind:
    """The values that a setting allows; `allowed` describes them in words."""

    allowed: str
    accepts: Callable[[object], bool]
    # Reads the text of an environment variable or of the command line.
    from_text: Callable[[str], object]
    # The values that the settings screen steps through; others may be allowed too.
    offered: tuple[Value, ...]

    def checked(self, value: object) -> Value:
        """Return the value, or raise ValueError if the setting does not allow it."""
        if not self.accepts(value):
            raise ValueError(value)
        return value if isinstance(value, str | int | float) else None

    def read(self, text: str) -> Value:
        """Return the value in a text, or raise ValueError."""
        return self.checked(self.from_text(text))


@dataclass(frozen=True, slots=True)
class Option:
    """A setting by its full name, such as `workbench.theme`."""

    name: str
    kind: ValueKind
    default: Value
    about: str

    @property
    def variable(self) -> str:
        """The environment variable that overrides the file."""
        return f"DLBRICKS_{self.name.replace('.', '_').upper()}"


def one_of(*words: str) -> ValueKind:
    """Allow these words only."""
    allowed = ", ".join(f'"{word}"' for word in words)
    return ValueKind(f"one of {allowed}", lambda value: value in words, str, words)


def text(allowed: str, *offered: Value) -> ValueKind:
    """Allow any text that is not empty; the code that uses it checks what it names."""
    return ValueKind(allowed, lambda value: isinstance(value, str) and value != "", str, offered)


def whole(least: int, most: int, *offered: Value) -> ValueKind:
    """Allow the whole numbers from `least` to `most`."""

    def accepts(value: object) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most

    return ValueKind(f"a whole number from {least} to {most}", accepts, int, offered)


def number(more_than: float, less_than: float, allowed: str, *offered: Value) -> ValueKind:
    """Allow the numbers between two others."""

    def accepts(value: object) -> bool:
        return isinstance(value, int | float) and not isinstance(value, bool) and more_than < value < less_than

    return ValueKind(allowed, accepts, float, offered)


AUTO, ON, OFF = "auto", "on", "off"

OPTIONS: tuple[Option, ...] = (
    Option("workbench.theme", text("the name of a theme"), "dark", "The theme of the workbench."),
    Option(
        "workbench.mouse",
        one_of(AUTO, ON, OFF),
        AUTO,
        "Use the mouse in the workbench; auto: unless the connection is remote. A change takes effect at the next "
        "start.",
    ),
    Option(
        "workbench.remote",
        one_of(AUTO, ON, OFF),
        AUTO,
        "Draw less, for slow connections; auto: if SSH_TTY or SSH_CONNECTION is set. A change takes effect at the next "
        "start.",
    ),
    Option(
        "cutting.granularity",
        whole(1, 999, 1, 2, 3, 4, 6, 8, 10),
        1,
        "The largest number of layers in a sequence, unless --granularity is given.",
    ),
    Option(
        "cutting.cut",
        one_of("chain", "runnable", "overlap"),
        "chain",
        "Which windows of layers are sequences, unless --cut is given.",
    ),
    Option(
        "cutting.order",
        one_of("branch", "paper"),
        "branch",
        "The order in which layers are cut, unless --order is given.",
    ),
    Option(
        "estimate.workers",
        whole(1, 64, None, 1, 2, 4, 8, 16),
        None,
        "The number of workers of the composition, unless --workers is given.",
    ),
    Option(
        "estimate.predictions",
        one_of(ON, OFF),
        ON,
        "Predict the latencies of bricks that were not measured, unless --measured-only is given.",
    ),
    Option(
        "run.runtime",
        text("the name of a runtime that `dlbricks runtimes` lists", None),
        None,
        "The runtime that runs bricks, unless --runtime or the box before a run names one.",
    ),
    Option(
        "run.threads",
        whole(1, 1024, None, 1, 2, 4, 8, 16),
        None,
        "The threads of the framework, unless --threads or the box before a run says how many.",
    ),
    Option(
        "run.target_ci",
        number(0, 1, "a number between 0 and 1", 0.005, 0.01, 0.02, 0.05),
        0.01,
        "The precision at which a brick is done: half of its interval, as a share of its latency. --target-ci and the "
        "box before a run override it.",
    ),
    Option(
        "run.time_budget",
        number(0, 1e9, "a number of seconds", None, 60, 300, 900, 1800, 3600, 7200, 14400),
        None,
        "The seconds after which a run stops, unless --time-budget or the box before a run sets them.",
    ),
)
BY_NAME = {option.name: option for option in OPTIONS}
# The section of key bindings, by action. Only the workbench knows which actions there are.
KEYS = "keys"
SECTIONS = (*dict.fromkeys(name.partition(".")[0] for name in BY_NAME), KEYS)


def shown(value: Value) -> str:
    """Return a value as the file writes it."""
    if value is None:
        return "(open)"
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' if isinstance(value, str) else f"{value!r}"
