import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.estimate.calibration import Example, fitted
from dlbricks_tui.estimate.errors import CalibrationError

TERM = "per_forgotten_sequence_ms"


def example(sequences: int, composed_ms: float, constant_ms: float, noise: float = 0.0) -> Example:
    measured_ms = (composed_ms + constant_ms * sequences) * (1 + noise)
    return Example(f"net of {sequences}", float(sequences), composed_ms, measured_ms)


@given(
    st.floats(-0.001, 0.1),
    st.lists(st.tuples(st.integers(1, 500), st.floats(1, 1000)), min_size=2, max_size=8, unique=True),
)
def test_what_all_networks_miss_alike_is_found(constant_ms: float, networks: list[tuple[int, float]]) -> None:
    correction = fitted([example(sequences, composed_ms, constant_ms) for sequences, composed_ms in networks])
    # How much it matters is how much it changes an estimate.
    for sequences, composed_ms in networks:
        missed_ms = (dict(correction.constants)[TERM] - constant_ms) * sequences
        assert abs(missed_ms) < 1e-6 * composed_ms
    assert max(map(abs, correction.residuals)) < 1e-6


def test_a_residual_is_of_a_network_that_had_no_part_in_the_fit() -> None:
    examples = [example(40, 10.0, 0.01), example(60, 20.0, 0.01), example(50, 15.0, 0.01, noise=0.05)]
    residuals = fitted(examples).residuals
    # The others agree, so that the odd one is off by exactly its own oddness.
    assert residuals[2] == pytest.approx(1 / 1.05 - 1)


def test_one_network_that_is_far_off_casts_doubt_on_models_but_does_not_move_the_constant() -> None:
    usual = [example(sequences, 0.3 * sequences, 0.01, noise) for sequences, noise in enumerate([0.01, -0.01] * 5, 20)]
    odd = example(40, 2.0, 0.01, noise=-0.3)
    with_it, without = fitted([*usual, odd]), fitted(usual)
    assert dict(with_it.constants)[TERM] == pytest.approx(dict(without.constants)[TERM], rel=0.5)
    assert abs(with_it.residuals[-1]) > 0.3
    assert 0.01 < without.relative_doubt < 0.04
    assert with_it.relative_doubt > 0.1


def test_too_few_networks_tell_nothing() -> None:
    with pytest.raises(CalibrationError, match="1 networks to calibrate on could be measured"):
        fitted([example(40, 10.0, 0.01)])
