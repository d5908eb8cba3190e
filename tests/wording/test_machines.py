"""The best systems of a model, in words."""

from dataclasses import replace

from dlbricks_tui.wording.fleets import machines_answer, machines_question
from tests.estimate.test_accuracy import incomplete
from tests.estimate.test_comparison import on, ranked


def test_the_question_names_the_model_if_there_is_one() -> None:
    assert machines_question("net") == "Which system is quickest and cheapest for net?"
    assert machines_question("") == "Which system is quickest and cheapest for a model?"


def test_the_quickest_and_the_cheapest_system_are_told_with_latency_and_cost() -> None:
    told = machines_answer("net", ranked(on("c5.xlarge", 6), on("c5.2xlarge", 4), on("mine", 5)))
    assert told.startswith(
        "c5.2xlarge (4.000 ms: MXNet, default threads, batch 1) is the quickest of 3 systems; "
        "c5.xlarge (6.000 ms: MXNet, default threads, batch 1) is the cheapest: $ "
    )
    assert machines_answer("net", ranked(on("c5.xlarge", 4), on("mine", 5))).startswith(
        "c5.xlarge (4.000 ms: MXNet, default threads, batch 1) is the quickest of 2 systems, and the cheapest: $ "
    )


def test_what_is_missing_for_an_answer_is_told() -> None:
    assert machines_answer("net", ()) == "net was not measured on any system."
    only = machines_answer("net", ranked(on("mine", 5)))
    assert only == "Only mine (5.000 ms: MXNet, default threads, batch 1) has results of it."
    told = machines_answer("net", ranked(on("mine", 5), replace(incomplete(), end_to_end=None)))
    assert "is the quickest of 2 systems" in told and "write prices into prices.toml" in told
