"""Results from elsewhere are not to be trusted either: each lie that can be seen is refused in a line."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.share.errors import ShareError
from dlbricks_tui.share.suites import results_file
from dlbricks_tui.share.suites.results_file import read_results
from dlbricks_tui.share.suites.suite_files import sha256
from tests.share.trio import Trio

Document = dict[str, Any]
KEPT = "kept.json"


@pytest.fixture(scope="module")
def measured(measured_suite: Trio, tmp_path_factory: pytest.TempPathFactory) -> Trio:
    trio = Trio(tmp_path_factory.mktemp("hostile") / "trio")
    copytree(measured_suite.path, trio.path)
    (trio.path / KEPT).write_bytes(trio.results.read_bytes())
    return trio


@pytest.fixture
def trio(measured: Trio) -> Trio:
    """The state after measuring, with the original file of results."""
    measured.results.write_bytes((measured.path / KEPT).read_bytes())
    return measured


def forge(trio: Trio, change: Callable[[Document], object], *, reseal: bool = True) -> None:
    """Change the file, and by default correct its hash as an attacker would."""
    document = json.loads(trio.results.read_bytes())
    change(document)
    if reseal:
        document.pop("check", None)
        document["check"] = sha256(json.dumps(document, sort_keys=True).encode())
    trio.results.write_text(json.dumps(document))


def refusal(trio: Trio) -> str:
    with pytest.raises(ShareError) as refused:
        trio.bring_home()
    told = str(refused.value)
    assert "\n" not in told
    assert len(told) < 600
    assert not trio.owner.contents().measurements
    return told


def first(document: Document) -> Document:
    measured = part(document)["measured"]
    found: Document = measured[min(measured)][0]
    return found


def part(document: Document) -> Document:
    found: Document = document["parts"][0]
    return found


def rename(document: Document, name: str) -> None:
    measured = part(document)["measured"]
    measured[name] = [{**it, "brick": name} for it in measured.pop(min(measured))]


def test_a_reformatted_file_reads_the_same(tmp_path: Path, measured: Trio) -> None:
    kept, again = measured.path / KEPT, tmp_path / "again.json"
    again.write_text(json.dumps(json.loads(kept.read_bytes()), indent=1))
    assert read_results(again) == read_results(kept)


def set_statistic(name: str, value: float) -> Callable[[Document], object]:
    return lambda document: first(document)["statistics"].update({name: value})


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            lambda document: rename(document, "f" * 32),
            f"results of brick {'f' * 32}, which its suite does not hold",
        ),
        (lambda document: part(document)["failed"].update({"f" * 32: "hung"}), "does not hold"),
        (lambda document: rename(document, "../../store"), "an id that no suite has"),
        (lambda document: rename(document, ""), "an id that no suite has"),
        (lambda document: first(document).update(brick="f" * 32), "that names another brick"),
        (lambda document: document.update(manifest_sha256="0" * 64), "changed after it was exported"),
        (lambda document: document.update(suite="0" * 32), "there is no key"),
        *(
            (set_statistic(name, value), "")
            for name, value in (
                ("trimmed_mean_ms", 1e-6),
                ("median_ms", 99.0),
                ("minimum_ms", 0.0),
                ("spread_ms", 7.0),
                ("count", 3),
                ("low_ms", -1),
            )
        ),
        *(
            (lambda document, samples=samples: first(document).update(samples_ms=list(samples)), "")
            for samples in ((), (-1.0,) * 10, (1e300,) * 10, (1e-9,) * 10)
        ),
        *(
            (lambda document, changes=changes: first(document).update(changes), "")
            for changes in (
                {"system": "another"},
                {"runtime": "another"},
                {"protocol": "guessed-1"},
                {"level": "fused"},
                {"when": "2999-01-01T00:00:00+00:00"},
                {"context": "conv"},
                {"table": "end_to_end"},
                {"dtype": "x" * 2000},
            )
        ),
        (lambda document: first(document)["noise"].update(warm_up=10_000), ""),
        (lambda document: first(document)["noise"].update({str(number): 0 for number in range(100)}), ""),
        (lambda document: document.update(system=first(document)), ""),
        (lambda document: document["system"].update(cpu="x" * 10_000), ""),
        (lambda document: part(document)["failed"].update({"0" * 32: 7}), ""),
        (lambda document: document.update(more=1), ""),
        (lambda document: part(document).pop("runtime"), ""),
        (lambda document: document.update(parts=[]), ""),
        (lambda document: document.update(parts=document["parts"] * 2), ""),
        (lambda document: part(document)["runtime"].update(framework="a new one"), ""),
        (lambda document: part(document)["measured"].update({min(part(document)["measured"]): []}), ""),
        (lambda document: document.update(format="something-else"), ""),
        (lambda document: document.update(schema=99), ""),
    ],
)
def test_a_forged_file_is_refused(trio: Trio, change: Callable[[Document], object], expected: str) -> None:
    forge(trio, change)
    assert expected in refusal(trio)


def test_a_file_that_was_changed_is_refused(trio: Trio) -> None:
    text = trio.results.read_text()
    forge(trio, lambda document: document.update(suite="0" * 32), reseal=False)
    assert "does not agree with its hash" in refusal(trio)
    for word in ("NaN", "Infinity", "1e999"):
        trio.results.write_text(text.replace('"samples_ms": [', f'"samples_ms": [{word}, ', 1))
        refusal(trio)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (gzip.compress(b" " * (1 << 24)), "does not begin like one"),
        (b" " * ((1 << 20) + 1), "more than 1 MiB"),
        (b'{"format":' + b"[" * 200_000, "nests too deep"),
    ],
)
def test_a_huge_or_deep_file_is_refused(
    trio: Trio, monkeypatch: pytest.MonkeyPatch, content: bytes, expected: str
) -> None:
    monkeypatch.setattr(results_file, "MOST_BYTES", 1 << 20)
    trio.results.write_bytes(content)
    assert expected in refusal(trio)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ShareError, match="nowhere"):
        read_results(tmp_path / "nowhere")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda values: st.lists(values, max_size=4) | st.dictionaries(st.text(max_size=8), values, max_size=4),
    max_leaves=8,
)
PATHS = (
    ("suite",),
    ("system",),
    ("parts", 0, "runtime", "threads"),
    ("system", "facts"),
    ("parts", 0, "measured"),
    ("parts", 0, "failed"),
    ("parts", 0, "measured", "first", 0, "statistics"),
    ("parts", 0, "measured", "first", 0, "statistics", "count"),
    ("parts", 0, "measured", "first", 0, "samples_ms"),
    ("parts", 0, "measured", "first", 0, "noise"),
    ("parts", 0, "measured", "first", 0, "when"),
    ("parts", 0, "measured", "first", 0, "uuid"),
    ("parts", 0, "measured", "first", 0, "batch_size"),
)


@given(st.sampled_from(PATHS), JSON)
def test_any_wrong_value_is_refused_with_one_line(measured: Trio, path: tuple[str | int, ...], value: Any) -> None:
    document = json.loads((measured.path / KEPT).read_bytes())
    where: Any = document
    for step in path[:-1]:
        where = where[min(where) if step == "first" else step]
    where[path[-1]] = value
    document.pop("check")
    document["check"] = sha256(json.dumps(document, sort_keys=True).encode())
    forged = measured.path / "forged.json"
    forged.write_text(json.dumps(document))
    try:
        read_results(forged)
    except ShareError as error:
        assert "\n" not in str(error)
