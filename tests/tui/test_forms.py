"""The forms of the workbench: every setting is stepped through, written, and refused in one line."""

from typing import Any

import pytest

from dlbricks_tui.api.new_runs import RunSettings
from dlbricks_tui.api.scenarios import ScenarioSettings
from dlbricks_tui.api.traces import TraceSettings
from dlbricks_tui.settings.loads import RATE
from dlbricks_tui.settings.setting import ValueRefusedError
from dlbricks_tui.tui.language import LanguageSettings, LanguageSettingsPanel
from dlbricks_tui.tui.run.boxes import RUN_ROWS
from dlbricks_tui.tui.scenario import SCENARIO_ROWS
from dlbricks_tui.tui.trace import TRACE_ROWS
from dlbricks_tui.tui.widgets.form import FormRow

_TWO = ("mxnet", "openvino")
FORMS: dict[str, tuple[tuple[FormRow, ...], Any]] = {
    "run": (RUN_ROWS, RunSettings(registered=_TWO, runtime=("mxnet",))),
    "scenario": (SCENARIO_ROWS, ScenarioSettings(runtimes=_TWO)),
    "trace": (TRACE_ROWS, TraceSettings(registered=_TWO, runtime="mxnet")),
    "language": (LanguageSettingsPanel.ROWS, LanguageSettings(registered=_TWO)),
}
ROWS = [pytest.param(row, form, id=f"{name}-{row.name}") for name, (rows, form) in FORMS.items() for row in rows]
NUMBERS = [it for it in ROWS if it.values[0].setting.kind.is_number]  # type: ignore[union-attr]


@pytest.mark.parametrize(("row", "form"), ROWS)
def test_each_setting_steps_through_its_values_and_comes_back(row: FormRow, form: Any) -> None:
    seen = [row.shown(form)]
    stepped = row.stepped(form, 1)
    while row.shown(stepped) not in seen and len(seen) < 100:
        seen.append(row.shown(stepped))
        assert row.stepped(row.stepped(stepped, 1), -1) == stepped
        stepped = row.stepped(stepped, 1)
    assert row.shown(stepped) in seen
    # There is no usual rate beside the highest.
    assert len(seen) > 1 or row.setting is RATE


@pytest.mark.parametrize(("row", "form"), NUMBERS)
@pytest.mark.parametrize("text", ["nan", "-1", "0", "inf", "1e99", "much", "1,,2"])
def test_no_setting_takes_a_text_that_is_no_value(row: FormRow, form: Any, text: str) -> None:
    with pytest.raises(ValueRefusedError, match=r"^give "):
        row.written(form, text)


@pytest.mark.parametrize(("row", "form"), NUMBERS)
def test_a_value_is_written_as_it_is_read(row: FormRow, form: Any) -> None:
    stepped = row.stepped(form, 1)
    assert row.written(form, row.as_written(stepped)) == stepped
    usual = row.written(stepped, "")
    assert getattr(usual, row.field) == (row.nothing if row.usual else row.setting.default)
