import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.estimate.calibration import CALL_MS, TERMS, Correction, Example, density_of, fitted
from dlbricks_tui.estimate.errors import CalibrationError

NAME = "warm_brick_ms"
NAMES = (NAME, "cold_brick_ms")
CONSTANT_MS = 0.02


def example(term: float, composed_ms: float, noise: float = 0.0) -> Example:
    return Example(f"net of {term}", (term,), composed_ms, (composed_ms + CONSTANT_MS * term) * (1 + noise))


def constant_of(correction: Correction) -> float:
    ((_, value),) = correction.constants
    return value


@given(st.lists(st.tuples(st.integers(1, 300), st.floats(50, 1000)), min_size=3, max_size=8))
def test_a_constant_that_all_networks_share_is_found(networks: list[tuple[int, float]]) -> None:
    correction = fitted([example(float(term), composed_ms) for term, composed_ms in networks], (NAME,))
    assert [name for name, _ in correction.constants] == [NAME]
    assert constant_of(correction) == pytest.approx(CONSTANT_MS, rel=1e-6)
    assert max(map(abs, correction.residuals)) < 1e-6


def test_residuals_are_computed_by_leaving_one_network_out() -> None:
    residuals = fitted(
        [example(40, 10.0), example(60, 20.0), example(7, 15.0), example(50, 15.0, 0.05)], (NAME,)
    ).residuals
    # The others agree, so that the odd one is off by exactly its own oddness.
    assert residuals[3] == pytest.approx(1 / 1.05 - 1)


def test_an_outlier_among_the_networks_widens_intervals_and_does_not_move_the_constant() -> None:
    usual = [example(count, 0.3 * count, noise) for count, noise in enumerate([0.01, -0.01] * 8, 20)]
    odd = example(40, 2.0, noise=-0.3)
    with_it, without = fitted([*usual, odd], (NAME,)), fitted(usual, (NAME,))
    for it in usual:
        assert it.error([constant_of(with_it)]) == pytest.approx(it.error([constant_of(without)]), abs=0.02)
    assert abs(with_it.residuals[-1]) > 0.3
    assert 0.01 < without.relative_doubt(0.0) < 0.04
    assert with_it.relative_doubt(0.0) > 1.3 * without.relative_doubt(0.0)


def test_the_time_of_a_call_is_measured_and_not_fitted() -> None:
    calls_ms = (0.05, 0.06, 0.07, 0.9)
    networks = [example(term, 1.0) for term in (40, 60, 7, 50)]
    called = [
        replace(it, measured_ms=it.measured_ms + call_ms, call_ms=call_ms)
        for it, call_ms in zip(networks, calls_ms, strict=True)
    ]
    correction = fitted(called, (CALL_MS, NAME))
    assert dict(correction.constants) == {CALL_MS: pytest.approx(0.065), NAME: pytest.approx(CONSTANT_MS)}
    assert max(map(abs, correction.residuals)) < 1e-6
    assert correction.call_ms == pytest.approx(0.065)
    assert fitted(networks, (NAME,)).call_ms == 0.0
    assert correction.added_ms(0.3, cold=False) == pytest.approx(CONSTANT_MS)


def test_networks_without_a_correction_are_accepted_and_too_few_refused() -> None:
    examples = [Example("nothing", (0.0,), 1.0, 1.0), example(10, 5.0), example(30, 5.0)]
    assert constant_of(fitted(examples, (NAME,))) == pytest.approx(CONSTANT_MS)
    with pytest.raises(CalibrationError, match="1 networks to calibrate on could be measured"):
        fitted(examples[1:2], (NAME,))


@pytest.mark.parametrize(("cold", "short_ms", "long_ms"), [(False, 0.001, 0.030), (True, -0.0006, -0.018)])
def test_short_bricks_are_corrected_by_less(cold: bool, short_ms: float, long_ms: float) -> None:
    correction = Correction(((NAME, 0.030), ("cold_brick_ms", -0.018), (CALL_MS, 1.0)))
    assert correction.added_ms(0.0, cold=cold) == 0.0
    assert correction.added_ms(0.010, cold=cold) == pytest.approx(short_ms)
    assert correction.added_ms(0.300, cold=cold) == correction.added_ms(5.0, cold=cold) == pytest.approx(long_ms)


def test_short_bricks_pay_what_a_node_costs_in_full() -> None:
    correction = Correction((("node_ms", -0.0002),))
    assert correction.added_ms(0.001, cold=False) == correction.added_ms(5.0, cold=True) == -0.0002
    # A brick never takes less than nothing.
    assert correction.added_ms(0.0001, cold=False) == pytest.approx(-0.00002)


def test_networks_of_short_and_of_long_layers_determine_both_constants_of_onnx_runtime() -> None:
    names, constants = ("warm_brick_ms", "node_ms"), (0.012, -0.0002)
    layers = [(60, 0.05), (240, 0.0006), (130, 0.004), (20, 0.9), (40, 0.2)]
    examples = []
    for count, layer_ms in layers:
        terms = tuple(count * TERMS[name](layer_ms, False) for name in names)
        added_ms = sum(constant * term for constant, term in zip(constants, terms, strict=True))
        examples.append(Example(f"{count} layers", terms, count * layer_ms, count * layer_ms + added_ms))
    found = fitted(examples, names)
    assert [value for _, value in found.constants] == pytest.approx(constants)
    assert max(map(abs, found.residuals)) < 1e-6


MIXED = ((30.0, 0.0), (20.0, 0.0), (10.0, 0.0), (4.0, 20.0), (8.0, 30.0), (2.0, 12.0))


@pytest.mark.parametrize("cold_ms", [-0.05, 0.0, 0.03])
def test_two_constants_are_found(cold_ms: float) -> None:
    true = [Example("net", terms, 12.0, 12.0 + CONSTANT_MS * terms[0] + cold_ms * terms[1]) for terms in MIXED]
    found = fitted(true, NAMES)
    assert dict(found.constants) == pytest.approx(dict(zip(NAMES, (CONSTANT_MS, cold_ms), strict=True)))
    assert max(map(abs, found.residuals)) < 1e-9
    # One odd network moves neither.
    odd = fitted([*true, Example("odd", (25.0, 10.0), 12.0, 9.0)], NAMES)
    assert dict(odd.constants) == pytest.approx(dict(found.constants))


def test_a_constant_that_no_network_determines_is_zero() -> None:
    found = fitted([Example("net", (term, 0.0), 5.0, 5.0 + 0.02 * term) for term in (40.0, 20.0, 30.0)], NAMES)
    assert dict(found.constants) == dict(zip(NAMES, (pytest.approx(0.02), 0.0), strict=True))


# How sure an estimate is by what the method was wrong by on networks.


def test_networks_of_many_short_sequences_have_larger_errors() -> None:
    found = fitted(
        [
            Example("long", (10.0,), 50.0, 50.5, density=0.3),
            Example("longer", (10.0,), 90.0, 90.0, density=0.2),
            Example("short", (10.0,), 1.0, 1.3, density=20.0),
            Example("shorter", (10.0,), 1.0, 0.8, density=25.0),
        ],
        (NAME,),
    )
    assert found.densities == (0.3, 0.2, 20.0, 25.0)
    assert found.relative_doubt(0.3) < found.relative_doubt(20.0) / 4
    # By all errors alike it would be as doubtful as the short ones.
    assert found.relative_doubt(0.3) < Correction(residuals=found.residuals).relative_doubt(0.3) / 4


def test_an_error_at_a_density_predicts_the_same_error_there_and_one_without_at_any() -> None:
    found = Correction(residuals=(0.1, -0.1), densities=(12.0, 12.0))
    assert found.relative_doubt(12.0) == pytest.approx(1.96 * 0.1)
    assert found.relative_doubt(0.0) == pytest.approx(1.96 * 0.1 / math.hypot(1, 3))
    found = Correction(residuals=(0.03, -0.03))
    assert found.relative_doubt(0.0) == found.relative_doubt(50.0) == pytest.approx(1.96 * 0.03)
    assert Correction().relative_doubt(50.0) == 0.0


def test_the_residuals_determine_how_intervals_grow_with_density() -> None:
    densities = (0.5, 1.0, 2.0, 20.0, 25.0, 30.0)
    alike = Correction(residuals=(0.03, -0.02, 0.04, 0.03, -0.04, 0.02), densities=densities)
    apart = Correction(residuals=(0.01, -0.01, 0.01, 0.10, -0.12, 0.14), densities=densities)
    assert alike.relative_doubt(30.0) < 1.5 * alike.relative_doubt(0.0)
    assert apart.relative_doubt(30.0) > 7 * apart.relative_doubt(0.0)


def test_one_odd_network_does_not_widen_all_intervals() -> None:
    usual = (0.01, -0.02, 0.015, 0.01, -0.005, 0.02, 0.015, -0.01)
    with_an_odd_one = Correction(residuals=(*usual, 0.5), densities=(1.0,) * 9)
    doubt = Correction(residuals=usual, densities=(1.0,) * 8).relative_doubt(1.0)
    assert doubt < with_an_odd_one.relative_doubt(1.0) < 2.5 * doubt


def test_very_short_sequences_count_in_part_towards_the_density() -> None:
    assert density_of([(2, 0.5), (1, 1.0)]) == pytest.approx(3 / 2.0)
    assert density_of([(1, 1.0), (4, 0.010)]) == pytest.approx(2 / 1.04)
    assert density_of([(3, 0.0)]) == density_of([]) == 0.0
