"""The panel of the settings of a scenario."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from dlbricks_tui.scenarios.scenario import ScenarioKind, usual_percentile
from dlbricks_tui.settings.loads import BATCHES, BOUND, FULL, INSTANCES, KIND, PERCENTILE, RATE, AskedScenario
from dlbricks_tui.settings.variant import RUNTIME, THREADS
from dlbricks_tui.tui.scenario import actions
from dlbricks_tui.tui.widgets.form import FormPanel, FormRow


@dataclass(frozen=True, kw_only=True)
class ScenarioSettings(AskedScenario):
    """A scenario as the user has chosen it; None is the usual value.

    The usual bound of a server is ten times its estimate; other kinds have none.
    """

    # The names of the runtimes to choose from, the usual one first.
    runtimes: tuple[str, ...] = ()
    kind: ScenarioKind = ScenarioKind.SERVER
    # The largest batch of waiting requests, or several sizes: these ones.
    batch_sizes: tuple[int, ...] = ()
    threads: int | None = None
    runtime: str | None = None
    # What the usual bound stands for, once it is known.
    usual_bound_ms: float | None = field(default=None, compare=False)


def _bound(settings: ScenarioSettings) -> str:
    bound_ms = settings.usual_bound_ms if settings.bound_ms is None else settings.bound_ms
    if bound_ms is not None:
        return f"{bound_ms:g} ms"
    return "usual" if settings.kind is ScenarioKind.SERVER else "none"


SCENARIO_ROWS = (
    FormRow(setting=KIND),
    FormRow(setting=BOUND, usual="usual", words=_bound),
    FormRow(
        setting=PERCENTILE,
        usual="that of MLPerf",
        words=lambda it: f"p{usual_percentile(it.kind) if it.percentile is None else it.percentile:g}",
    ),
    FormRow(setting=RATE, usual="the highest", words=lambda it: "highest" if it.rate is None else f"{it.rate:g}/s"),
    FormRow(setting=BATCHES, many=True, usual="usual"),
    FormRow(setting=INSTANCES),
    FormRow(setting=THREADS, usual="usual", meaning="of each instance"),
    FormRow(setting=RUNTIME, usual="usual", meaning="that serves", offered=lambda it: it.runtimes),
    FormRow(setting=FULL, label="length"),
)


class SettingsPanel(FormPanel):
    """A row for each setting with its value."""

    scope = actions.SETTINGS
    TITLE = "Scenario"
    REACHED_BY = "scenario.go_to_settings"
    ROWS = SCENARIO_ROWS
    ABOUT = (
        "How requests arrive and how they are served; the prediction follows each change. The usual bound of a server "
        "is ten times what a request takes. Short tests have the fewest queries that decide about the percentile. "
        "{load_settings.write} writes a value of your own."
    )

    def show_bound(self, settings: ScenarioSettings, bound_ms: float | None) -> None:
        """Show settings, and the bound that the usual one stands for."""
        self.show(replace(settings, usual_bound_ms=bound_ms))
