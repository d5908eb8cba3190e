import csv
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from dlbricks_tui.cli.main import main
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.documents import SCHEMA
from tests.answers.comparisons.exports import DEFINITIONS, ONE, exported, layer, model, origin
from tests.cli.people import Command as Compare
from tests.cli.people import one_line
from tests.store.samples import line_of_record


@pytest.fixture
def compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Compare:
    """Compare sides, and return the exit status and both outputs."""

    def call(*sides: str | Path, more: Sequence[str] = (), output: str = "report") -> tuple[int, str, str]:
        words = ["report", "--compare", *map(str, sides), "-o", str(tmp_path / output), *more]
        status = main(["--data-dir", str(tmp_path / "data"), *words])
        return status, *capsys.readouterr()

    return call


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Two files: one model and one brick are slower in the second one, which has another system too."""
    first = exported(tmp_path / "a.json", model("<m>", 10.0), model("n", 5.0), layer(0, 1.0), layer(1, 2.0), origin())
    second = exported(
        tmp_path / "b.json.gz",
        model("<m>", 12.0),
        model("n", 5.0),
        model("n", 2.5, system="there"),
        layer(0, 1.5),
        layer(2, 2.0),
    )
    return first, second


def rows(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / "figures" / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_two_files_become_one_page_with_the_rows_beside_it(
    compare: Compare, files: tuple[Path, Path], tmp_path: Path
) -> None:
    status, out, told = compare(*files, more=["--json"])
    assert status == 0
    document, folder = json.loads(out), tmp_path / "report"
    page = (folder / "index.html").read_text()
    assert document["page"] == str(folder / "index.html")
    assert [section in page for section in ("What is being compared?", "Which host is how fast?")] == [True, True]
    # Nothing is loaded, and names cannot be markup.
    assert "&lt;m&gt;" in page and "<m>" not in page and "<script" not in page and "default-src 'none'" in page
    assert "of 2 models 1 slower, 1 same, and of 1 brick 1 slower" in told
    (between,) = document["comparisons"]
    assert [(it["name"], it["verdict"]) for it in between["models"]["changes"]] == [("<m>", "slower"), ("n", "same")]
    assert (between["bricks"]["slower"], between["bricks"]["tested"]) == (1, 1)
    assert {(it["of"], it["system"]) for it in between["not_compared"]} == {
        ("brick", "here"),
        ("model", "there"),
    }
    assert document["hosts"]["others"][0]["ratio"] == pytest.approx(0.5)
    assert all(Path(it).is_file() for it in document["files"])
    (slow, same) = rows(folder, "figure-models-b")
    assert float(slow["low"]) < 0.2 < float(slow["high"]) and same["verdict"] == "same"
    (host,) = rows(folder, "figure-hosts-1")
    assert float(host["there ratio"]) == pytest.approx(0.5)
    # The same files give the same bytes.
    before = {path: path.read_bytes() for path in folder.rglob("*.*") if path.is_file()}
    compare(*files)
    assert {path: path.read_bytes() for path in before} == before


def test_selections_of_the_store_are_sides_too(compare: Compare, files: tuple[Path, Path], tmp_path: Path) -> None:
    with ResultsDatabase(tmp_path / "data" / "store") as store:
        store.add(*DEFINITIONS, layer(0, 1.0), layer(0, 2.0, system="there"))
    # The results have no method in common, so that nothing is drawn.
    other = exported(tmp_path / "other.json", layer(0, 1.0, protocol="cold"))
    status, _, told = compare(other, "there")
    assert (status, len(told.splitlines())) == (2, 1)
    assert "was measured by method cold, and system there by method hot" in told


def test_different_methods_are_refused_in_one_line(compare: Compare, tmp_path: Path) -> None:
    first = exported(tmp_path / "a.json", model("m", 1.0))
    second = exported(tmp_path / "b.json", model("m", 1.0, protocol="cold"))
    told = one_line(compare(first, second))
    assert f"{first} was measured by method hot, and {second} by method cold" in told
    assert not (tmp_path / "report").exists()


def test_the_same_file_or_the_same_results_twice_are_one_line(compare: Compare, tmp_path: Path) -> None:
    first = exported(tmp_path / "a.json", result := model("m", 1.0))
    second = exported(tmp_path / "b.json.gz", result)
    assert compare(first, first)[2] == f"dlbricks: error: {first} is named twice: a comparison needs different files\n"
    status, _, told = compare(first, second)
    assert status == 2 and told == f"dlbricks: error: {first} and {second} have the same results: name different ones\n"


def test_broken_and_newer_files_are_one_line(compare: Compare, tmp_path: Path) -> None:
    first = exported(tmp_path / "a.json", model("m", 1.0))
    broken = tmp_path / "broken.json"
    newer = b'{"end_to_end": {\n"1": %s\n}}\n' % line_of_record(model("m", 1.0), schema=SCHEMA + 1)
    for content, said in {
        b"": "nothing to compare: it has no results",
        b"no json": "nothing in",
        b"\x1f\x8b broken": "is packed and incomplete",
        b'{"check": "00000000", "schema": 1, "_default": {}}': "part of a store",
        newer: "newer dlbricks",
    }.items():
        broken.write_bytes(content)
        told = one_line(compare(first, broken))
        assert said in told and str(broken) in told


def test_wrong_words_are_one_line(compare: Compare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exported(tmp_path / "a.json", model("m", 1.0))
    monkeypatch.chdir(tmp_path)
    for sides, said in {
        ("a.json",): "two sides or more",
        ("a.json", "gone.json"): "cannot read",
        ("a.json", "."): "cannot read",
        ("a.json", "nothing"): "'nothing' is no system, runtime, run or day",
    }.items():
        assert said in one_line(compare(*sides))
    for more in (("--system", "here"), ("--runtime", ONE)):
        assert "leave --system" in one_line(compare("a.json", "b.json", more=more))
