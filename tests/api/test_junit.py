"""JUnit XML of checks, by the rules that the schemas of Jenkins and of Ant's JUnit task have in common."""

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from datetime import datetime, timezone

from dlbricks_tui.api.checks import CheckedModel, Occasion, junit_xml
from dlbricks_tui.evaluations.baseline import Difference
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.variant import InstructionSet, Optimisation, Precision
from dlbricks_tui.store.change import Verdict

OCCASION = Occasion(datetime(2026, 11, 27, 8, 0, 1, 5, timezone.utc), 12.5, "c5.xlarge", (("by", "0.03"),))
SAME = CheckedModel(
    model="squeezenet1.1",
    framework="onnxruntime",
    runtime="onnxruntime-1.20 python-3.11 threads-1",
    threads=1,
    batch=1,
    precision=Precision.F32,
    instructions=InstructionSet.ALL,
    optimisation=Optimisation.ALL,
    level=Level.FUSED,
    was_ms=4.4,
    is_ms=4.41,
    change=0.002,
    interval=(-0.01, 0.014),
    p_value=0.7,
    significant=False,
    verdict=Verdict.SAME,
    reason="",
    compared=True,
    differences=(),
    when="2026-11-20T08:00:00+00:00",
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
UNMEASURED = replace(
    SAME,
    is_ms=None,
    change=None,
    interval=None,
    p_value=None,
    verdict=Verdict.UNKNOWN,
    reason="no",
    compared=False,
)

# The attributes that both schemas require, and the order of elements.
REQUIRED = {
    "testsuite": {"name", "timestamp", "hostname", "tests", "failures", "errors", "time", "id", "package"},
    "testcase": {"name", "classname", "time"},
    "failure": {"type"},
    "error": {"type"},
    "property": {"name", "value"},
}
ALLOWED_IN = {
    "testsuites": ["testsuite"],
    "testsuite": ["properties", "testcase", "system-out", "system-err"],
    "properties": ["property"],
    "testcase": ["skipped", "error", "failure"],
}


def written(*checked: CheckedModel) -> ET.Element:
    root = ET.fromstring(junit_xml(checked, OCCASION))
    assert root.tag == "testsuites" and not root.attrib
    for element in root.iter():
        assert REQUIRED.get(element.tag, set()) <= element.attrib.keys(), element.tag
        inside = [child.tag for child in element]
        order = ALLOWED_IN.get(element.tag, [])
        assert inside == sorted(inside, key=order.index), element.tag
    (suite,) = root
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.attrib["timestamp"])
    return suite


def test_each_verdict_has_its_element() -> None:
    suite = written(SAME, SLOWER, NOISY, UNMEASURED, replace(SAME, verdict=Verdict.FASTER))
    counts = {name: suite.attrib[name] for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "5", "failures": "1", "errors": "1", "skipped": "1"}
    found = [[child.tag for child in case] for case in suite.findall("testcase")]
    assert found == [[], ["failure"], ["skipped"], ["error"], []]


def test_a_failure_tells_the_change_and_the_differences_and_its_time_is_todays_latency() -> None:
    case = written(SLOWER).find("testcase")
    assert case is not None and case.attrib["time"] == "0.005000"
    failure = case.find("failure")
    assert failure is not None and failure.text is not None
    assert failure.attrib["type"] == "slower"
    assert "+13.6 %" in failure.attrib["message"] and "p < 0.001" in failure.attrib["message"]
    assert "kernel: 6.1 before, 6.2 now" in failure.text.splitlines()


def test_names_that_xml_cannot_hold_are_spelled_out() -> None:
    hostile = replace(SLOWER, model="a\x1b[31m\x00\ud800\uffff<&\"'\nb", reason="\x08]]>")
    suite = written(hostile)
    (case,) = suite.findall("testcase")
    assert case.attrib["name"].startswith("a\\x1b[31m\\x00\\ud800\\uffff<&\"'\\nb (onnxruntime, 1 thread)")
    text = junit_xml([hostile], OCCASION)
    assert text.encode("utf-8") and all(char.isprintable() or char == "\n" for char in text)


def test_the_suite_says_when_where_and_against_what() -> None:
    suite = written(SAME)
    assert (suite.attrib["hostname"], suite.attrib["time"]) == ("c5.xlarge", "12.500")
    assert suite.attrib["timestamp"] == "2026-11-27T08:00:01"
    (stated,) = suite.findall("properties/property")
    assert (stated.attrib["name"], stated.attrib["value"]) == ("by", "0.03")
