"""The text of written evaluations."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.bricks.cutting import Cut
from dlbricks_tui.bricks.ordering import LayerOrder
from dlbricks_tui.evaluations.evaluation import (
    EvaluatedModel,
    EvaluatedRuntime,
    EvaluatedScenario,
    Evaluation,
    Measuring,
    RecordedResult,
    Requirements,
)
from dlbricks_tui.evaluations.reading import evaluation_of
from dlbricks_tui.evaluations.writing import text_of
from dlbricks_tui.measure.method import Method
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.traits import TRAITS
from dlbricks_tui.runtime.variant import InstructionSet, Optimisation, Precision
from dlbricks_tui.scenarios.scenario import ScenarioKind
from tests.evaluations.example import EVALUATION

LINES = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=12)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=12)
MAYBE_TRUE = st.none() | st.booleans()
HASHES = st.just("") | st.text("0123456789abcdef", min_size=64, max_size=64)
LATENCIES = st.floats(1e-6, 1e9)
AXES = st.integers(1, 2**31 - 1)
VARIABLES = st.dictionaries(st.sampled_from(["OMP_PROC_BIND", "MXNET_ENGINE_TYPE", "ORT_X1"]), st.text("a0 =,:{}\"'#"))
# A TOML file has no word for nothing.
FACTS = st.dictionaries(TEXTS, st.booleans() | st.integers(-(2**40), 2**40) | LATENCIES | TEXTS, max_size=3).map(
    lambda facts: tuple(facts.items())
)


def several(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(values, max_size=3, unique=True).map(tuple)


def open_or(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | several(values).filter(bool)


MODELS = st.builds(
    EvaluatedModel,
    name=LINES,
    sha256=HASHES,
    path=st.just("") | LINES,
    inputs=st.dictionaries(LINES, st.lists(AXES, min_size=1, max_size=4).map(tuple), max_size=2),
    values=st.dictionaries(
        LINES, st.lists(st.integers(-(2**40), 2**40) | LATENCIES, min_size=1, max_size=3).map(tuple), max_size=2
    ),
)
RUNTIMES = st.builds(
    EvaluatedRuntime,
    framework=st.sampled_from(list(TRAITS)),
    version=st.sampled_from(["", ">=1.20,<2", "==1.9.1", "===2026.1-odd", "~=1.4"]),
    threads=open_or(st.integers(1, 1024)),
    batch=open_or(AXES),
    precision=open_or(st.sampled_from(Precision)),
    instructions=open_or(st.sampled_from(InstructionSet)),
    optimisation=open_or(st.sampled_from(Optimisation)),
    variables=VARIABLES,
)
MEASURING = st.builds(
    Measuring,
    level=st.sampled_from(Level),
    granularity=st.integers(1, 999),
    cut=st.sampled_from(Cut),
    order=st.none() | st.sampled_from(LayerOrder),
    method=st.none() | st.sampled_from(Method),
    end_to_end=st.booleans(),
    target_interval=st.none() | st.floats(0.0001, 0.9),
)
SCENARIOS = st.builds(
    EvaluatedScenario,
    kind=st.sampled_from([ScenarioKind.MULTI, ScenarioKind.SERVER, ScenarioKind.OFFLINE]),
    percentile=st.none() | st.floats(0.1, 99.9),
    bound_ms=st.floats(1e-6, 1e6),
    batch=several(st.integers(1, 256)),
    instances=st.integers(1, 256),
    full=st.booleans(),
)
SYSTEMS = st.builds(
    Requirements,
    cores=st.sampled_from(["", "4", "04", ">=4", "< 16", "==2"]),
    memory_gib=st.sampled_from(["", "16", "15.5", ">=7.5"]),
    cpu=st.just("") | LINES,
    instance_type=st.just("") | LINES,
    instructions=several(st.sampled_from([each for each in InstructionSet if each is not InstructionSet.ALL])),
    governor=st.just("") | LINES,
    turbo=MAYBE_TRUE,
    hyper_threading=MAYBE_TRUE,
    quiet=st.booleans(),
)


@st.composite
def evaluations(draw: st.DrawFn) -> Evaluation:
    """Draw an evaluation that keeps to the rules."""
    models = draw(st.lists(MODELS, min_size=1, max_size=3, unique_by=lambda model: model.name))
    runtimes = draw(st.lists(RUNTIMES, min_size=1, max_size=3, unique_by=lambda runtime: text_of_runtime(runtime)))
    timed = st.lists(LATENCIES, min_size=3, max_size=3).map(sorted)
    results = [
        RecordedResult(
            model=model.name,
            framework=draw(st.sampled_from(runtimes)).framework,
            version=draw(LINES),
            threads=draw(st.none() | st.integers(1, 1024)),
            batch=draw(AXES),
            precision=draw(st.sampled_from(Precision)),
            instructions=draw(st.sampled_from(InstructionSet)),
            optimisation=draw(st.sampled_from(Optimisation)),
            variables=draw(st.dictionaries(TEXTS, TEXTS, max_size=2)),
            when=draw(st.datetimes()).isoformat() + "+00:00",
            **dict(zip(("low_ms", "measured_ms", "high_ms"), draw(timed), strict=True)),
            samples_ms=tuple(draw(st.lists(LATENCIES, max_size=25))),
            packages=draw(FACTS),
            host=draw(FACTS),
            sha256=draw(HASHES),
        )
        for model in models
        if draw(st.booleans())
    ]
    return Evaluation(
        name=draw(LINES),
        about=draw(TEXTS),
        models=tuple(models),
        runtimes=tuple(runtimes),
        measuring=draw(MEASURING),
        scenarios=tuple(draw(st.lists(SCENARIOS, max_size=2))),
        system=draw(SYSTEMS),
        results=tuple(results),
    )


def text_of_runtime(runtime: EvaluatedRuntime) -> str:
    return text_of(replace(EVALUATION, runtimes=(runtime,)))


@given(evaluations())
def test_what_is_written_is_read_again(evaluation: Evaluation) -> None:
    assert evaluation_of(text_of(evaluation), "", "file") == evaluation


def test_the_text_states_what_the_program_would_choose_and_leaves_out_what_nothing_requires() -> None:
    evaluation = Evaluation(
        name="small", models=(EvaluatedModel(name="alexnet"),), runtimes=(EvaluatedRuntime(framework="mxnet"),)
    )
    *_, text = text_of(evaluation).partition("for editors.\n\n")
    assert text == (
        'format = 1\nname = "small"\n\n'
        "# The models by their content. Copies with another name or in another place will do.\n"
        '[[model]]\nname = "alexnet"\n\n'
        "# The runtimes. Each combination of the values of a runtime is measured.\n"
        '[[runtime]]\nframework = "mxnet"\n\n'
        "# How the models are cut and timed.\n"
        '[measure]\nlevel = "fused"\ngranularity = 1\ncut = "chain"\nbricks = true\nend_to_end = true\n'
    )


def test_results_come_last_with_ten_samples_in_a_line() -> None:
    (result,) = EVALUATION.results
    text = text_of(replace(EVALUATION, results=(replace(result, samples_ms=(1.25,) * 21),)))
    head, _, results = text.partition("[[result]]")
    assert "[system]" in head
    assert results.count("    1.25, 1.25, 1.25, 1.25, 1.25, 1.25, 1.25, 1.25, 1.25, 1.25,\n") == 2
    assert results.index("samples_ms") < results.index("[result.packages]") < results.index("[result.host]")


def test_a_fact_without_value_is_left_out() -> None:
    (result,) = EVALUATION.results
    text = text_of(replace(EVALUATION, results=(replace(result, host=(("turbo", None), ("kernel", "6.1"))),)))
    (read,) = evaluation_of(text, "", "file").results
    assert read.host == (("kernel", "6.1"),)
