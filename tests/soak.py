"""The end of `make soak`: a table of its areas, and what its tests tell."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

# Tests record under this name, with `record_property`, what a reader should see at the end.
TOLD = "told"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """End the long tests in a summary."""
    if config.getoption("hypothesis_profile") == "thorough":
        reports = [it for kind in ("passed", "failed", "error") for it in terminalreporter.getreports(kind)]
        terminalreporter.section("soak")
        terminalreporter.write("".join(f"{line}\n" for line in summary(reports)))


def summary(reports: Iterable[pytest.TestReport]) -> list[str]:
    """Return a row for each folder of tests, and below what tests have told."""
    # Tests, failures and seconds.
    areas: dict[str, tuple[int, int, float]] = {}
    told: list[str] = []
    for report in reports:
        area = "/".join(report.nodeid.partition("::")[0].split("/")[:2])
        tests, failures, seconds = areas.get(area, (0, 0, 0.0))
        areas[area] = tests + (report.when == "call"), failures + report.failed, seconds + report.duration
        if report.when == "call":
            told += [str(value) for name, value in report.user_properties if name == TOLD]
    rows = [
        f"{area:<22}{tests:>7}{failures:>8}{seconds / 60:>9.1f}"
        for area, (tests, failures, seconds) in sorted(areas.items())
    ]
    return [f"{'area':<22}{'tests':>7}{'failed':>8}{'minutes':>9}", *rows, *told]
