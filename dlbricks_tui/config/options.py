"""All settings, in the order in which they are listed."""

from dlbricks_tui.config.option import Option, Value, number, one_of, text, whole

AUTO, ON, OFF = "auto", "on", "off"

OPTIONS: tuple[Option, ...] = (
    Option("workbench.theme", text("the name of a theme"), "dark", "Which theme gives the workbench its colours."),
    Option(
        "workbench.mouse",
        one_of(AUTO, ON, OFF),
        AUTO,
        "Whether the workbench listens to the mouse; auto: unless the connection is a remote one. Counts from the next "
        "start on.",
    ),
    Option(
        "workbench.remote",
        one_of(AUTO, ON, OFF),
        AUTO,
        "Whether to write little and seldom, for slow connections; auto: where SSH_TTY or SSH_CONNECTION is set. "
        "Counts from the next start on.",
    ),
    Option(
        "cutting.granularity",
        whole(1, 999, 1, 2, 3, 4, 6, 8, 10),
        1,
        "The most layers of a sequence, where --granularity does not say it.",
    ),
    Option(
        "cutting.cut",
        one_of("chain", "runnable", "overlap"),
        "chain",
        "Which windows of layers are sequences, where --cut does not say it.",
    ),
    Option(
        "cutting.order",
        one_of("branch", "paper"),
        "branch",
        "In which order layers are cut, where --order does not say it.",
    ),
    Option(
        "estimate.workers",
        whole(1, 64, None, 1, 2, 4, 8, 16),
        None,
        "For how many workers to compose, where --workers does not say it.",
    ),
    Option(
        "run.runtime",
        text("the name of a runtime that `dlbricks runtimes` lists", None),
        None,
        "Which runtime runs bricks, where neither --runtime nor the box before a run says it.",
    ),
    Option(
        "run.threads",
        whole(1, 1024, None, 1, 2, 4, 8, 16),
        None,
        "How many threads the framework computes with, where neither --threads nor the box before a run says it.",
    ),
    Option(
        "run.target_ci",
        number(0, 1, "a number between 0 and 1", 0.005, 0.01, 0.02, 0.05),
        0.01,
        "How well a brick is to be known, where neither --target-ci nor the box before a run says it: half of its "
        "interval, as a share.",
    ),
    Option(
        "run.time_budget",
        number(0, 1e9, "a number of seconds", None, 60, 300, 900, 1800, 3600, 7200, 14400),
        None,
        "After how many seconds a run stops, where neither --time-budget nor the box before a run says it.",
    ),
)
BY_NAME = {option.name: option for option in OPTIONS}
# Under this one stand keys by the action that they are to do; which actions there are, only the workbench knows.
KEYS = "keys"
SECTIONS = (*dict.fromkeys(name.partition(".")[0] for name in BY_NAME), KEYS)


def shown(value: Value) -> str:
    """A value as it stands in the file."""
    if value is None:
        return "(open)"
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' if isinstance(value, str) else f"{value!r}"
