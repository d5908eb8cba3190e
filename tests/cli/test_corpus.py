import json
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.cli.main import main
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.store.records import Measurement
from tests.estimate.stored import brick_records, model_record, store_of
from tests.estimate.table1 import table1

pytestmark = pytest.mark.usefixtures("shared_cache")


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main(["corpus", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def view(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(["corpus", *arguments]) == 0
    return capsys.readouterr().out.splitlines()


def row(lines: list[str], start: str) -> list[str]:
    """Return the words of the first line that begins with these words."""
    return next(line.split() for line in lines if line.split()[: len(start.split())] == start.split())


def test_the_fifty_models_of_table_1_have_the_papers_totals(capsys: pytest.CaptureFixture[str]) -> None:
    corpus = document(capsys, "table1:14", "table1", "table1:14")
    assert corpus["layers"] == corpus["sequences"] == 10_815
    assert 1_485 <= corpus["unique_layers"] <= 1_536
    assert corpus["contexts"] >= corpus["unique_layers"]
    # A model that is named twice is compared once.
    fourteenth, *others = (model["table1_id"] for model in corpus["models"])
    assert fourteenth == "14" and others == [str(number) for number in range(1, 51) if number != 14]
    assert round(corpus["models"][46]["share"], 3) == 0.039
    assert corpus["speedup"] is None


def test_similarity_is_a_grid_over_the_models_in_their_order(capsys: pytest.CaptureFixture[str]) -> None:
    corpus = document(capsys, "table1:42", "vgg16", "table1:43")
    assert corpus["jaccard"] == [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 1.0]]
    assert [(model["model"], model["layers"]) for model in corpus["models"]] == [
        ("2D Face Alignment Net Trained on 300W Large Pose Data", 967),
        ("vgg16", 38),
        ("3D Face Alignment Net Trained on 300W Large Pose Data", 967),
    ]


def test_repeated_types_come_the_most_repeated_first(capsys: pytest.CaptureFixture[str]) -> None:
    types = document(capsys, "vgg16")["repeated_types"]
    assert types[0] == {"kind": "elementwise", "layers": 15, "repeated": 15}
    assert [found["repeated"] for found in types] == sorted((found["repeated"] for found in types), reverse=True)


def test_at_a_higher_granularity_sequences_are_counted_beside_layers(capsys: pytest.CaptureFixture[str]) -> None:
    corpus = document(capsys, "vgg16", "-g", "4")
    assert corpus["layers"] == 38
    assert corpus["unique_layers"] <= corpus["sequences"] < 38
    assert "sequences" in view(capsys, "vgg16", "-g", "4")[0]


def test_the_speedup_is_the_time_of_the_models_over_that_of_their_unique_bricks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    ours: dict[str, Any] = {"system": fingerprint().id, "runtime": Registry(data).default().identity}
    squeezenet = decompose(table1()["16"])
    records = [*brick_records(squeezenet, **ours), model_record(squeezenet, 40.0, **ours)]
    unique_ms = sum(record.statistics.trimmed_mean_ms for record in records[:-1] if isinstance(record, Measurement))
    store_of(data / "store", *records).close()
    corpus = document(capsys, "table1:16", "--data-dir", str(data))
    assert corpus["speedup"] == pytest.approx(40.0 / unique_ms)
    assert "times as long as their unique bricks" in view(capsys, "table1:16", "--data-dir", str(data))[1]
    # VGG-16 has no results and does not count.
    assert document(capsys, "table1:16", "table1:17", "--data-dir", str(data))["speedup"] == corpus["speedup"]
    assert document(capsys, "table1:17", "--data-dir", str(data))["speedup"] is None


def test_the_text_shows_totals_shares_kinds_and_similarity(capsys: pytest.CaptureFixture[str]) -> None:
    lines = view(capsys, "resnet18_v1", "resnet50_v1")
    assert lines[0].startswith("2 models, 242 layers: 58 unique (24.0 %)")
    assert row(lines, "1 resnet18_v1")[2:6] == ["68", "28", "41.2", "%"]
    assert row(lines, "2 resnet50_v1")[2:6] == ["174", "46", "26.4", "%"]
    assert row(lines, "convolution")[1] == "73"
    assert lines[-3:] == [
        "                 1     2",
        "1 resnet18_v1  100 █  28 ▒",
        "2 resnet50_v1   28 ▒ 100 █",
    ]


def test_an_unloadable_model_is_named_and_the_others_are_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken-symbol.json").write_text("{}")
    assert main(["corpus", "vgg16", str(tmp_path / "broken-symbol.json"), "--json"]) == 1
    captured = capsys.readouterr()
    assert [model["model"] for model in json.loads(captured.out)["models"]] == ["vgg16"]
    assert captured.err.startswith("left out: broken: ")
    assert main(["corpus", str(tmp_path / "broken-symbol.json")]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("dlbricks: error: broken: ")
