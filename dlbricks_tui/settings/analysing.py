"""The settings of what follows a measurement: analyses and traces."""

from dlbricks_tui.analysis.what_if import WhatIfKind
from dlbricks_tui.settings.setting import Setting, one_of, whole
from dlbricks_tui.traces.trace import USUAL_INFERENCES, TraceLevel

KINDS = Setting(
    name="kinds",
    kind=one_of(*WhatIfKind),
    about="measure and prove only these kinds of what-ifs",
    usual="all",
)

LEVELS = Setting(
    name="levels",
    kind=one_of(*TraceLevel),
    about="the levels to trace: model, layer, primitive, thread",
    meaning="the last one, with all below it",
    usual="all that are possible",
)
INFERENCES = Setting(
    name="inferences",
    kind=whole(1, 1000, 1, 3, 10, 30, 100),
    about="trace so many inferences at each level",
    meaning="of each level",
    default=USUAL_INFERENCES,
    usual=f"{USUAL_INFERENCES}",
)
