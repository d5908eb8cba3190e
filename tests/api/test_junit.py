"""JUnit XML of checks, by the rules that the schemas of Jenkins and of Ant's JUnit task have in common."""

import xml.etree.ElementTree as ET
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

from dlbricks_tui.api.checks import CheckedModel, junit_xml
from dlbricks_tui.api.documents import taken
from dlbricks_tui.api.evaluating import comparison
from dlbricks_tui.evaluations.baseline import Difference
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.variant import Variant
from dlbricks_tui.store.change import Verdict
from tests.documents.snapshots import check
from tests.evaluations.example import baseline

OCCASION = datetime(2026, 11, 27, 8, 0, 1, 5, timezone.utc), 12.5, "c5.xlarge", {"by": "0.03"}
(COMPARED,) = comparison([baseline(4.41, model="squeezenet1.1")], [baseline(4.4, model="squeezenet1.1")], 0.03)
SAME = taken(
    CheckedModel,
    replace(COMPARED, significant=False),
    Variant(threads=2),
    runtime="onnxruntime-1.20 python-3.11 threads-1",
    level=Level.FUSED,
    p_value=0.7,
    compared=True,
    was_samples=50,
    is_samples=150,
    runs=("r1", "r2"),
)
SLOWER = replace(
    SAME,
    is_ms=5.0,
    change=0.136,
    interval=(0.12, 0.15),
    p_value=1e-9,
    significant=True,
    verdict=Verdict.SLOWER,
    differences=(Difference("kernel", "6.1", "6.2"),),
)
NOISY = replace(SAME, verdict=Verdict.UNKNOWN, reason="its interval reaches more than 3.0 % to a side")
NOTHING: dict[str, Any] = dict.fromkeys(("is_ms", "change", "interval", "p_value"))
UNMEASURED = replace(SAME, **NOTHING, verdict=Verdict.UNKNOWN, reason="no", compared=False)


def test_a_suite_has_its_occasion_and_each_verdict_its_element() -> None:
    checked = SAME, SLOWER, NOISY, UNMEASURED, replace(SAME, verdict=Verdict.FASTER)
    check("junit", {"five models": junit_xml(checked, *OCCASION)})


def test_names_that_xml_cannot_hold_are_spelled_out() -> None:
    hostile = replace(SLOWER, model="a\x1b[31m\x00\ud800\uffff<&\"'\nb", reason="\x08]]>")
    text = junit_xml([hostile], *OCCASION)
    (case,) = ET.fromstring(text).iter("testcase")
    assert case.attrib["name"].startswith("a\\x1b[31m\\x00\\ud800\\uffff<&\"'\\nb (onnxruntime, 2 threads)")
    assert text.encode("utf-8") and all(char.isprintable() or char == "\n" for char in text)
