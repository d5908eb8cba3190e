"""The rows of forms, by their settings."""

from collections.abc import Sequence
from typing import Any

from dlbricks_tui.settings.setting import Setting
from dlbricks_tui.tui.widgets.form import FormRow


def row_of(rows: Sequence[FormRow], setting: Setting[Any]) -> FormRow:
    """Return the row of a setting."""
    return next(row for row in rows if row.setting is setting)
