"""The settings of an analysis."""

from dlbricks_tui.analysis.what_if import WhatIfKind
from dlbricks_tui.settings.setting import Setting, one_of

KINDS = Setting(
    name="kinds",
    kind=one_of(*WhatIfKind),
    about="measure and prove only these kinds of what-ifs",
    usual="all",
)
