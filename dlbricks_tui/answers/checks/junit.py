"""Checks as JUnit XML, which CI systems show: a test case for each model in each combination.

| verdict | in the file |
|---|---|
| same, faster | a test case that passes |
| slower | `failure` |
| unknown, not measured | `error` |
| unknown, measured | `skipped` |

Elements and attributes are those that the schemas of Jenkins and of Ant's JUnit task have in common. The standard
library needs fewer lines to write them than a package for JUnit files.
"""

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from dlbricks_tui import __version__
from dlbricks_tui.answers.checks.checking import CheckPlan
from dlbricks_tui.answers.checks.results import CheckedModel, label_of, line_of
from dlbricks_tui.atomic_write import write_named
from dlbricks_tui.evaluations.evaluation import EvaluationError
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.printable import printable, printable_lines
from dlbricks_tui.store.change import Verdict

_SUITE, _PACKAGE = "dlbricks check", "dlbricks.check"


@dataclass(frozen=True, slots=True)
class Occasion:
    """When and where a check took place, how long it took, and what it compared with."""

    began: datetime
    seconds: float
    system: str
    properties: tuple[tuple[str, str], ...] = ()


def refuse_unwritable(path: Path) -> None:
    """Raise EvaluationError before anything is measured if the file of the verdicts cannot be written."""
    if path.is_dir():
        raise EvaluationError(f"--junit {path}: that is a folder; name a file in it")
    if not path.absolute().parent.is_dir():
        raise EvaluationError(f"--junit {path}: there is no folder {path.absolute().parent}")


def write_junit(path: Path, checked: Sequence[CheckedModel], plan: CheckPlan, began: datetime) -> None:
    """Write the verdicts of a check that began then."""
    seconds = (datetime.now(timezone.utc) - began).total_seconds()
    stated = (("against", str(plan.file)), ("by", f"{plan.options.by:g}"), ("dlbricks", __version__))
    content = junit_xml(checked, Occasion(began, seconds, fingerprint().id, stated)).encode()
    try:
        write_named(path, lambda file: file.write(content))
    except OSError as error:
        raise EvaluationError(f"--junit {path} cannot be written: {error.strerror}; name another file") from error


def junit_xml(checked: Sequence[CheckedModel], occasion: Occasion) -> str:
    """Return a check as JUnit XML."""
    root = ET.Element("testsuites")
    cases = [_case(one) for one in checked]
    suite = ET.SubElement(
        root,
        "testsuite",
        id="0",
        package=_PACKAGE,
        name=_SUITE,
        tests=str(len(cases)),
        failures=str(_count(cases, "failure")),
        errors=str(_count(cases, "error")),
        skipped=str(_count(cases, "skipped")),
        time=f"{occasion.seconds:.3f}",
        # The schema has no time zone.
        timestamp=occasion.began.strftime("%Y-%m-%dT%H:%M:%S"),
        hostname=printable(occasion.system),
    )
    properties = ET.SubElement(suite, "properties")
    for name, value in occasion.properties:
        ET.SubElement(properties, "property", name=name, value=printable(value))
    suite.extend(cases)
    for name in ("system-out", "system-err"):
        ET.SubElement(suite, name)
    ET.indent(root)
    return f"<?xml version='1.0' encoding='utf-8'?>\n{ET.tostring(root, encoding='unicode')}\n"


def _case(one: CheckedModel) -> ET.Element:
    # CI systems draw the times of a test case, which are today's latencies here.
    seconds = (one.is_ms or 0.0) / 1000
    case = ET.Element("testcase", name=printable(label_of(one)), classname=_PACKAGE, time=f"{seconds:.6f}")
    outcome = _outcome(one)
    if outcome:
        # Characters that XML cannot hold, such as ESC, are spelled out.
        found = ET.SubElement(case, outcome, message=printable(one.reason or line_of(one)), type=one.verdict.value)
        found.text = printable_lines("\n".join([line_of(one), *(it.in_words for it in one.differences)]))
    return case


def _outcome(one: CheckedModel) -> str:
    """Return the element of what is wrong; empty for a test case that passes."""
    if one.verdict is Verdict.SLOWER:
        return "failure"
    if one.verdict is Verdict.UNKNOWN:
        return "skipped" if one.compared else "error"
    return ""


def _count(cases: Sequence[ET.Element], outcome: str) -> int:
    return sum(case.find(outcome) is not None for case in cases)
