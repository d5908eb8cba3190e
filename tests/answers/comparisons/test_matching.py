from dataclasses import replace
from typing import Any

import pytest

from dlbricks_tui.answers.sides import ResultExecution, corresponding, value_in_words
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.variant import USUAL_KERNELS, Precision

USUAL = ResultExecution(
    "here", "mxnet", "1.9.1", "3.11", 1, 1, Precision.F32, USUAL_KERNELS, (), Level.FUSED, "inside-1"
)


def variants(**fields: Any) -> list[ResultExecution]:
    """Executions that have these values one after the other."""
    (name, values), *_ = fields.items()
    return [replace(USUAL, **{name: value}) for value in values]


def test_equal_executions_correspond_and_others_do_not() -> None:
    (found,) = corresponding(variants(threads=[1, 2]), variants(threads=[2, 4]))
    assert (found.first.threads, found.second.threads, found.differ) == (2, 2, frozenset())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("system", "there"),
        ("version", "1.9.2"),
        ("threads", 2),
        ("batch", 8),
        ("precision", Precision.BF16),
        ("level", Level.WRITTEN),
        ("variables", (("OMP_WAIT_POLICY", "active"),)),
    ],
)
def test_what_each_group_has_one_value_of_is_compared_and_named(name: str, value: Any) -> None:
    other = replace(USUAL, **{name: value})
    (found,) = corresponding([USUAL], [other])
    assert (found.first, found.second, found.differ) == (USUAL, other, frozenset({name}))


def test_several_values_on_a_side_are_not_compared_with_another_one() -> None:
    assert corresponding(variants(threads=[1, 2]), variants(threads=[4])) == []


def test_different_methods_never_correspond() -> None:
    assert corresponding([USUAL], variants(method=["alone-1"])) == []


def test_the_versions_of_each_framework_are_compared() -> None:
    ones = [USUAL, replace(USUAL, framework="onnxruntime", version="1.20")]
    others = [USUAL, replace(USUAL, framework="onnxruntime", version="1.21")]
    found = corresponding(ones, others)
    assert [(it.first.version, it.second.version) for it in found] == [("1.9.1", "1.9.1"), ("1.20", "1.21")]
    assert [it.differ for it in found] == [frozenset(), frozenset({"version"})]


def test_frameworks_are_compared_if_each_group_has_one() -> None:
    other = replace(USUAL, framework="onnxruntime", version="1.20", threads=2)
    (found,) = corresponding([USUAL], [other])
    assert found.differ == {"framework", "version", "threads"}


@pytest.mark.parametrize(
    ("name", "words"),
    [("threads", "1 thread"), ("batch", "1"), ("precision", "f32"), ("variables", "none"), ("level", "fused")],
)
def test_circumstances_have_words(name: str, words: str) -> None:
    assert value_in_words(name, USUAL) == words
