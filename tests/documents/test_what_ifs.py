from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from dlbricks_tui.analysis.what_if import Correction, Gain, MeasuredGain, WhatIf, WhatIfKind
from dlbricks_tui.analysis.what_ifs import what_ifs_of
from dlbricks_tui.documents.layout import TEXT
from dlbricks_tui.documents.parts import Table
from dlbricks_tui.documents.what_ifs import (
    ShownWhatIf,
    change_facts,
    change_reasons,
    gains_picture,
    gains_sentence,
    interval_of,
    largest_gain,
    remarks_on,
    what_if_columns,
    what_ifs_parts,
)
from dlbricks_tui.estimate.knowledge import Latency
from tests.analysis.executions import executed, with_nodes
from tests.bricks.graphs import chain
from tests.documents.snapshots import check
from tests.documents.test_layout import texts

GRAPH = with_nodes(chain("conv", "relu", "pool"))
BASELINE = executed(GRAPH, {0: 4.0, 1: 1.0, 2: 1.0}, end_to_end=Latency(6.5, 6.4, 6.6))
FASTER = executed(GRAPH, {0: 2.0, 1: 1.0, 2: 1.0}, threads=2)
(FOUND,) = what_ifs_of(BASELINE, [FASTER])
PARALLEL = replace(FOUND, id="parallel-2", kind=WhatIfKind.PARALLEL)
NOISY = Gain(0.26, 0.05, 0.47)


def change(found: WhatIf = FOUND, proof: Gain | None = None) -> ShownWhatIf:
    measured = None if proof is None else MeasuredGain(4.81, proof.value, (proof.low, proof.high), 6.5, "2026-11-27T00")
    return ShownWhatIf(found, measured, None if found.change is None else FASTER)


def lines_of(changes: Sequence[ShownWhatIf], width: int = 80) -> list[str]:
    return texts(width, *what_ifs_parts(changes), look=TEXT)


def remarks(found: WhatIf = FOUND, proof: Gain | None = None) -> list[str]:
    return list(remarks_on(change(found, proof)))


def test_what_ifs_show_gain_proof_setting_and_layers() -> None:
    loss, bound = Gain(-1.2, -3.0, -0.9), replace(FOUND, change=None)
    both = [change(PARALLEL, loss), change(bound)]
    check(
        "what-ifs",
        {
            "none": what_ifs_parts([]),
            "proved": what_ifs_parts([change(proof=NOISY)]),
            "not proved": what_ifs_parts([change()]),
            "under way": [Table(what_if_columns(both, {"parallel-2": "running"}), both)],
            "the picture": gains_picture(both),
            "the picture of small gains": gains_picture([change(), change(replace(FOUND, gain=Gain(0.0, -0.05, 0.9)))]),
            "no picture": gains_picture([]),
            "facts": [*change_facts(both[0]), *change_reasons(both[0])],
            "facts of a bound": [*change_facts(both[1]), *change_reasons(both[1])],
        },
    )
    titles, row, *_ = lines_of([change(proof=NOISY)], 55)
    assert titles.endswith("PROVED") and row.endswith("+26.0 %")


def test_one_line_says_which_unproved_what_ifs_are_not_to_be_trusted() -> None:
    found = replace(FOUND, layers=())
    small, loss = (replace(found, id=str(gain), gain=Gain(gain, gain, gain)) for gain in (0.05, -0.5))
    parallel = replace(PARALLEL, layers=())
    told = "to be proved first: branches at once (never gained), gains below 10 %"
    unproved = lines_of([change(it) for it in (loss, small, found, parallel)])
    assert (len(unproved), unproved[-1]) == (10, told)
    assert len(lines_of([change(it, NOISY) for it in (loss, small, found, parallel)])) == 9
    # Nobody can prove a bound.
    assert len(lines_of([change(found), change(replace(parallel, change=None))])) == 5


@pytest.mark.parametrize(
    ("found", "under_way", "expected"),
    [
        (change(), {}, ("not yet", "muted")),
        (change(replace(FOUND, change=None)), {}, ("cannot", "muted")),
        (change(proof=NOISY), {}, ("+26.0 %", "good")),
        (change(proof=Gain(-0.1, -0.2, 0.0)), {}, ("-10.0 %", "bad")),
        (change(proof=NOISY), {"threads-2": "running"}, ("running", "warn")),
    ],
)
def test_the_column_of_proofs_tells_bounds_and_what_is_under_way(
    found: ShownWhatIf, under_way: Mapping[str, str], expected: tuple[str, str]
) -> None:
    (proved,) = (it for it in what_if_columns([found], under_way) if it.title == "proved")
    assert callable(proved.style)
    assert (proved.cell(found), proved.style(found)) == expected


def test_the_largest_gain_is_to_be_proved_where_it_is_not_to_be_trusted() -> None:
    assert largest_gain([change(PARALLEL)]).endswith("), to be proved")
    told = "largest gain: run 2 branches at once, +26.0 % (+5 to +47), proved"
    assert largest_gain([change(replace(FOUND, change=None)), change(PARALLEL, NOISY)]) == told
    assert largest_gain([change()]).endswith(")")


def test_a_sentence_counts_the_changes_that_save_time() -> None:
    unsure = change(PARALLEL, Gain(0.2, -0.1, 0.5))
    assert gains_sentence([change(), unsure]).startswith(
        "1 of 2 changes saves time; largest gain: use 2 threads, +33.3 %"
    )
    assert gains_sentence([unsure]) == "No change is worth making: none of 1 change saves time for certain."
    assert gains_sentence([]).startswith("Which change is worth making is not known")


def test_a_what_if_that_is_not_to_be_trusted_says_so_until_it_is_proved() -> None:
    small = replace(FOUND, gain=Gain(0.05, 0.01, 0.09))
    remark = "A gain below 10 % can be a loss: prove it."
    assert remark in remarks(small)
    assert remark not in remarks(small, Gain(0.05, 0.04, 0.06))
    assert remark not in remarks()


def test_a_proof_that_may_have_gained_nothing_is_no_largest_gain() -> None:
    assert largest_gain([change(proof=Gain(0.26, -0.05, 0.57))]) == ""
    assert "The interval contains 0: the change may gain nothing." in remarks(proof=Gain(0.2, -0.1, 0.5))


def test_an_unproved_prediction_says_whether_the_whole_model_was_timed_after_the_change() -> None:
    assert remarks() == ["It compares sums of layers: the whole model was not timed after the change."]
    timed = replace(FASTER, found=replace(FASTER.found, end_to_end=Latency(4.1, 4.0, 4.2)))
    (remark,) = remarks_on(change()._replace(changed=timed))
    assert remark == "The whole model took 4.100 ms after the change, in another run."
    assert "No runtime can do it, so it is a limit, and cannot be proved." in remarks(replace(FOUND, change=None))


def test_a_predicted_loss_is_no_gain_and_no_limit_however_large() -> None:
    slower = replace(FOUND, gain=Gain(-0.54, -0.64, -0.45), change=None)
    assert lines_of([change(slower)])[1].split("  ")[1:3] == ["no gain", "-64 to -45"]
    assert remarks(slower) == ["No runtime can do it, and it would gain nothing."]
    picture = gains_picture([change(slower)])
    assert picture is not None and picture.rows[0].text == "no gain"


def test_a_prediction_that_proofs_of_other_models_corrected_says_so_until_it_is_proved_itself() -> None:
    taught = replace(FOUND, correction=Correction(2, Gain(0.4, 0.3, 0.5)))
    assert "Corrected by proofs of 2 other models on this host; without them: +40.0 % (+30 to +50)." in remarks(taught)
    assert not any("Corrected" in remark for remark in remarks(taught, proof=NOISY))


def test_a_noisy_proof_does_not_judge_a_prediction() -> None:
    assert FOUND.gain.value == pytest.approx(1 / 3)
    assert remarks(proof=NOISY) == ["The proof is noisy: its interval is +5 to +47. Repeat it on a quiet host."]
    (remark,) = remarks(proof=Gain(0.26, 0.2, 0.32))
    assert remark == "The proof agrees with the prediction: they differ by 7 points."
    (remark,) = remarks(proof=Gain(0.13, 0.1, 0.16))
    assert remark == "The proof refutes the prediction: they differ by 20 points."


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (-0.21, 0.012, "-21 to +1"),
        (-0.004, 0.3, "+0 to +30"),
        (-9.99, 0.77, "-999 to +77"),
        (-699.92, 0.77, "<-999 to +77"),
        (-700.0, -20.0, "below -999"),
        (-2.09, 1.81, "-209 to +100"),
    ],
)
def test_intervals_end_at_a_loss_of_999_percent_and_at_a_gain_of_100(low: float, high: float, expected: str) -> None:
    assert interval_of(Gain((low + high) / 2, low, high)) == expected
