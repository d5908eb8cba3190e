from dataclasses import replace
from datetime import datetime

import pytest

from dlbricks_tui.answers.store_contents import KnownSystem
from dlbricks_tui.documents.parts import Part, Table
from dlbricks_tui.documents.systems import comparison_parts, system_columns, system_parts
from dlbricks_tui.models.graph import Level
from dlbricks_tui.store.selections import Combination
from dlbricks_tui.wording import numbers
from tests.documents.snapshots import check
from tests.estimate.test_accuracy import incomplete
from tests.estimate.test_comparison import on, ranked
from tests.store.samples import WHEN, peaks, runtime, system

WAYS = (
    Combination("c5.xlarge", "mxnet-1.9.1", Level.FUSED, "hot", 3, 4, 1),
    Combination("c5.xlarge", "unknown-1", Level.WRITTEN, "alone", 1, 1, 2),
)
HOST = KnownSystem(system(), 0.17, WAYS, is_host=True, peaks=(peaks(),), newest=WHEN)
OTHER = KnownSystem(system("bare", cpu="", cores=0, memory_bytes=0, instance_type="", facts=()), None, ())


@pytest.fixture(autouse=True)
def _an_hour_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbers, "now", lambda: datetime.fromisoformat(WHEN).timestamp() + 3600)


def table(*known: KnownSystem) -> Part:
    return Table(system_columns(known), known)


def test_systems_have_a_row_each_and_all_that_is_known_of_one() -> None:
    facts = (("smt", True), ("turbo_boost", False), ("governor", None), ("numa", 2))
    named = replace(HOST, system=system(facts=facts))
    check(
        "systems",
        {
            "with peaks": [table(HOST, OTHER)],
            "without peaks": [table(replace(HOST, peaks=(), is_host=False), OTHER)],
            "the host": system_parts(named, {"mxnet-1.9.1": runtime()}),
            "a bare one": system_parts(OTHER, {}),
        },
    )


def test_models_on_systems_are_a_list_or_a_grid() -> None:
    lacking = replace(incomplete(), end_to_end=None)
    of_one = ranked(on("c5.xlarge", 6), on("c5.2xlarge", 4), lacking)
    of_other = ranked(on("c5.xlarge", 2), on("mine", 1))
    check(
        "systems-compared",
        {
            "one model": comparison_parts({"net": of_one}),
            "one system": comparison_parts({"one": ranked(on("c5.xlarge", 6)), "two": ranked(on("c5.xlarge", 5))}),
            "several of both": comparison_parts({"one": of_one, "two": of_other, "none": ranked(on("mine", 3))}),
        },
    )
