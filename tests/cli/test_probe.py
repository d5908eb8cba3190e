"""`dlbricks probe`, with an interpreter that always starts the fake worker."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from dlbricks_tui.host import processor
from dlbricks_tui.runtime.variant import InstructionSet
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import Measurement, new_uuid
from tests.cli.people import Command, one_line
from tests.runs.runs import MODEL, move_results

pytestmark = pytest.mark.usefixtures("data_with_fake", "shared_cache")

ELSEWHERE = ("c5.xlarge", "c5.2xlarge")
HOW = ("--runtime", "fake")
MEASURING = ("--level", "written", "--method", "alone", "--fixed-runs", "5")
# The store that the first test has made: a run serves all.
MEASURED: list[Path] = []


@pytest.fixture
def known(dlbricks: Command, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the results of two other systems, and none of this host."""
    folder = tmp_path / "data" / "store"
    if not MEASURED:
        assert dlbricks("run", MODEL, *HOW, *MEASURING)[0] == 0
        # This host is no other system.
        assert NO_OTHERS in one_line(dlbricks("probe", MODEL, *HOW))
        move_results(folder, *ELSEWHERE)
        MEASURED.append(tmp_path_factory.mktemp("measured") / "store")
        shutil.copytree(folder, MEASURED[0])
    shutil.copytree(MEASURED[0], folder, dirs_exist_ok=True)
    return folder


NO_OTHERS = "the store has no results of another system to compare this one with"


def test_a_probe_estimates_all_models_of_the_store_from_few_ordinary_results(dlbricks: Command, known: Path) -> None:
    status, out, told = dlbricks("probe", *HOW, "--bricks", "6", "--json")
    assert status == 0
    found = json.loads(out)
    assert found["bricks"] == 6
    assert found["system"] not in ELSEWHERE
    assert sorted(found["known_systems"]) == sorted(ELSEWHERE)
    assert 0 < found["seconds"] < 60
    (model,) = found["models"]
    assert (model["model"], model["level"], model["system"]) == (MODEL, "written", found["system"])
    assert model["coverage"]["measured"] < model["coverage"]["predicted"] + model["coverage"]["measured"] == 21
    assert not model["partial"]
    low_ms, high_ms = model["interval_ms"]
    assert 0 < low_ms < model["sequential_ms"] < high_ms
    assert 0 < model["predicted_share"] < 1
    assert "compared with" in told and "6 bricks measured" in told
    (again,) = json.loads(dlbricks("estimate", MODEL, *HOW, "--json")[1])
    assert again["sequential_ms"] == model["sequential_ms"]
    here = [it for it in json.loads(dlbricks("systems", "--json")[1]) if it["system"] not in ELSEWHERE]
    assert [it["results"][0]["bricks"] for it in here] == [6]
    (probe, *_) = json.loads(dlbricks("runs", "--json")[1])[::-1]
    assert probe["bricks"]["run"] == 6
    compared = {it["system"]: it for it in json.loads(dlbricks("systems", "compare", MODEL, "--json")[1])}
    assert len(compared) == 3
    (probed,) = [it for name, it in compared.items() if name not in ELSEWHERE]
    assert not probed["complete"]
    assert 0 < probed["predicted_share"] < 1
    assert probed["interval_ms"][0] < probed["latency_ms"] < probed["interval_ms"][1]


def test_a_probe_of_a_model_with_an_input_shape_is_a_table_that_marks_predictions(
    dlbricks: Command, known: Path
) -> None:
    # The fake worker cannot infer the shapes of other batch sizes.
    status, _, told = dlbricks("probe", MODEL, *HOW, "--batch", "8")
    assert status == 2
    assert f"{MODEL} (batch 8)" in told
    status, out, told = dlbricks("probe", MODEL, *HOW, "--input", "data=1,3,224,224", "--bricks", "6")
    assert status == 0
    row = next(row for row in out.splitlines() if row.startswith(MODEL))
    assert "~" in row and " to " in row and "%" in row
    assert "predicted" in out
    assert "6 bricks measured" in told


def test_an_empty_store_and_numbers_that_make_no_sense_are_refused_in_one_line(dlbricks: Command) -> None:
    for arguments in ((), (MODEL,)):
        line = one_line(dlbricks("probe", *arguments, *HOW))
        assert NO_OTHERS in line
        assert "dlbricks results export" in line
        assert "dlbricks results import FILE" in line
    for option, value in (("--seconds", "0"), ("--seconds", "inf"), ("--bricks", "-1")):
        assert "give a " in one_line(dlbricks("probe", MODEL, option, value))


def test_other_systems_with_another_runtime_are_named(dlbricks: Command, known: Path) -> None:
    line = one_line(dlbricks("probe", MODEL, *HOW, "--threads", "7"))
    assert "threads-7; there are results by mxnet-1.9.1" in line
    assert "(level written, method alone): choose one of these runtimes with its threads" in line
    told = dlbricks("probe", MODEL, *HOW, "--level", "fused", "--method", "alone")[2]
    assert ", level fused, method alone; there are results by" in told


def test_results_of_other_versions_are_no_basis_of_a_probe(dlbricks: Command, known: Path) -> None:
    with ResultsDatabase(known) as store:
        found = store.records(Measurement)
        store.delete(it.uuid for it in found)
        store.add(*[replace(it, protocol="hot-1", uuid=new_uuid()) for it in found])
    line = one_line(dlbricks("probe", MODEL, *HOW))
    assert "by methods of other versions of dlbricks" in line
    assert "measure there with this version" in line


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        (("--optimisation", "basic"), "has no choice of optimisation levels: leave basic out"),
        (("--instructions", "avx2"), "this processor has no avx2 instructions: choose from sse41, all"),
        (("--instructions", "avx2,all"), "'avx2,all': give one of sse41, "),
        (("--optimisation", "most"), "'most': give one of all, extended, basic, none"),
    ],
)
def test_limits_on_kernels_that_are_not_possible_are_refused_in_one_line(
    dlbricks: Command, monkeypatch: pytest.MonkeyPatch, limit: tuple[str, str], message: str
) -> None:
    monkeypatch.setattr(processor, "instruction_sets", lambda _: (InstructionSet.SSE41, InstructionSet.ALL))
    status, out, told = dlbricks("probe", MODEL, *HOW, *limit)
    assert (status, out) == (2, "")
    assert message in told.splitlines()[-1]
