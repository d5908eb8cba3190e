from dlbricks_tui.documents.parts import MarkedSentence
from dlbricks_tui.documents.systems import finding_parts
from dlbricks_tui.host.noise import Finding, NoiseVerdict
from tests.documents.test_layout import texts


def test_a_disturbance_has_its_effect_and_cure_below() -> None:
    found = Finding("other load", "90 % busy", NoiseVerdict.NOISY, "outliers", "end what computes")
    assert texts(80, *finding_parts(found)) == [
        "noisy   other load: 90 % busy",
        "        outliers",
        "        cure: end what computes",
    ]


def test_what_is_unknown_or_quiet_is_told_in_a_line() -> None:
    assert texts(80, *finding_parts(Finding("clock", "tsc", NoiseVerdict.QUIET, "none", ""))) == ["quiet   clock: tsc"]
    unknown = Finding("turbo", "unknown", NoiseVerdict.UNKNOWN, "samples drift", "")
    assert texts(80, *finding_parts(unknown)) == ["unknown turbo"]


def test_verdicts_differ_in_style() -> None:
    parts = [next(finding_parts(Finding("clock", "tsc", it, "none", ""))) for it in NoiseVerdict]
    assert [it.style for it in parts if isinstance(it, MarkedSentence)] == ["good", "warn", "muted"]
