"""Hostile suites and results: each attack is refused in one line that names the problem."""

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.models.graph import Level
from dlbricks_tui.share import results_file, suite_files
from dlbricks_tui.share.errors import BrokenBrickError, BrokenSuiteError, ShareError
from dlbricks_tui.share.mxnet_excerpts import MXNetReader
from dlbricks_tui.share.results_file import read_results
from dlbricks_tui.share.suite_files import SuiteFolder, network_name, read_manifest, sha256
from tests.models.table_framework import TableFramework
from tests.share.trio import GIBIBYTE, Trio, grown, piped

Document = dict[str, Any]
HEAD = {"format": "dlbricks-suite", "schema": 2, "precision": "f32", "frameworks": ["mxnet"]}


@pytest.fixture
def trio(tmp_path: Path, measured_suite: Trio) -> Trio:
    """A copy of one export, which a test may damage."""
    trio = Trio(tmp_path)
    copytree(measured_suite.suite, trio.suite)
    return trio


def change_manifest(trio: Trio, change: Callable[[Document], object]) -> None:
    path = trio.suite / "suite.json"
    document = json.loads(path.read_bytes())
    change(document)
    path.write_text(json.dumps(document))


def refusal(trio: Trio) -> str:
    with pytest.raises(BrokenSuiteError) as refused:
        SuiteFolder(trio.suite)
    return one_line(refused.value)


def one_line(error: Exception) -> str:
    told = str(error)
    assert "\n" not in told
    assert len(told) < 600
    return told


def brick_refusal(trio: Trio) -> str:
    """Return the error about the first brick."""
    suite = SuiteFolder(trio.suite)
    with pytest.raises(BrokenBrickError) as refused:
        suite.network(suite.manifest.bricks[0])
    return one_line(refused.value)


def first_file(trio: Trio) -> Path:
    return trio.suite / "bricks" / network_name(SuiteFolder(trio.suite).manifest.bricks[0])


def test_a_link_to_the_outside_is_refused(trio: Trio) -> None:
    path = first_file(trio)
    outside = trio.path / "outside"
    path.rename(outside)
    path.symlink_to(outside)
    assert "is a link" in brick_refusal(trio)
    (trio.suite / "bricks").rename(trio.path / "outside folder")
    (trio.suite / "bricks").symlink_to(trio.path / "outside folder")
    with pytest.raises(BrokenBrickError, match="link"):
        SuiteFolder(trio.suite).network(SuiteFolder(trio.suite).manifest.bricks[0])
    (trio.suite / "suite.json").rename(trio.path / "outside manifest")
    (trio.suite / "suite.json").symlink_to(trio.path / "outside manifest")
    assert "link" in refusal(trio)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (piped, "not a regular file"),
        (lambda path: path.write_bytes(path.read_bytes().replace(b"data0", b"data1")), "is not the file that the"),
        (grown, "1,099,511,627,776 bytes"),
    ],
)
def test_another_file_is_refused_before_it_is_read(trio: Trio, change: Callable[[Path], object], expected: str) -> None:
    change(first_file(trio))
    assert expected in brick_refusal(trio)


def test_a_gzip_bomb_is_not_unpacked(trio: Trio) -> None:
    bomb = gzip.compress(b" " * (1 << 22))
    (trio.suite / "suite.json").write_bytes(bomb)
    assert "does not begin like one" in refusal(trio)
    with pytest.raises(BrokenBrickError, match="no symbol file"):
        MXNetReader(TableFramework(), Level.WRITTEN, GIBIBYTE).read(bomb)


def test_a_huge_manifest_is_refused_before_it_is_read(trio: Trio) -> None:
    os.truncate(trio.suite / "suite.json", (32 << 20) + 1)
    assert "33,554,433 bytes, and at most 33,554,432 are allowed" in refusal(trio)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"{" + b"[],[]," * 5_000_000, "8,000,000 values"),
        (b'{"format":' + b"[" * 200_000 + b"]" * 200_000 + b"}", "nests too deep"),
    ],
    ids=["values", "depth"],
)
def test_a_huge_or_deep_manifest_is_refused_before_it_is_created(content: bytes, said: str) -> None:
    with pytest.raises(BrokenSuiteError, match=said):
        read_manifest(content, "suite.json")


def test_too_many_bricks_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite_files, "MOST_BRICKS", 5)
    brick = {"id": "0" * 32, "format": "MXNet", "layers": 1, "bytes": 1, "sha256": "0" * 64}
    head = {**HEAD, "suite": "0" * 32, "level": "fused"}
    content = json.dumps({**head, "bricks": [brick] * 6}).encode()
    with pytest.raises(BrokenSuiteError, match="6 bricks; a suite has 1 to 5"):
        read_manifest(content, "suite.json")


@pytest.mark.parametrize("text", [b"", b"[]", b"null", b"{", b'{"format":"dlbricks-suite","schema":NaN}', b"\xff{}"])
def test_an_invalid_manifest_is_refused(trio: Trio, text: bytes) -> None:
    (trio.suite / "suite.json").write_bytes(text)
    assert str(trio.suite / "suite.json") in refusal(trio)


IDS = ("../../etc/passwd", "/etc/passwd", "a" * 31, "A" * 32, "0" * 31 + "\n", "0" * 31 + "/", "../../etc/passwd\0\0")


@pytest.mark.parametrize(
    ("head", "brick", "expected"),
    [
        *(({}, {"id": it}, "is not 32 digits of 0-9 and a-f") for it in IDS),
        *(({"schema": it}, {}, f"(schema {it}, this version reads 2); use the same") for it in (1, 3, 99)),
        ({"level": None}, {}, "unexpected fields"),
        ({"more": 1}, {}, "unexpected fields"),
        ({"level": "molten"}, {}, "wrong id or level"),
        ({"suite": "me"}, {}, "wrong id or level"),
        ({"precision": "f4"}, {}, "unknown precision 'f4'"),
        ({"frameworks": ["abacus"]}, {}, "does not know"),
        ({"frameworks": []}, {}, "does not know"),
        ({"frameworks": ["onnxruntime"]}, {}, "none of its frameworks runs"),
        ({"bricks": []}, {}, "a suite has 1 to"),
        ({"bricks": [7]}, {}, "is not an object"),
        ({}, {"format": "caffe"}, "unknown format 'caffe'"),
        ({}, {"format": "ONNX"}, "none of its frameworks runs"),
        ({}, {"layers": True}, "a layers that is not a whole number"),
        ({}, {"layers": 3}, "bricks of 3 layers, as earlier versions of dlbricks wrote: export it anew"),
        ({}, {"bytes": 1 << 40}, "which is impossible"),
        ({}, {"cold": "lukewarm"}, "a cold that is not a truth value"),
        ({}, {"cold": 1}, "a cold that is not a truth value"),
        ({}, {"sha256": "0"}, "without a hash"),
        ({}, {"path": "../.."}, "unexpected fields"),
    ],
)
def test_a_manifest_has_no_other_fields_and_values(trio: Trio, head: Document, brick: Document, expected: str) -> None:
    def change(document: Document) -> None:
        document.update(head)
        for name, value in head.items():
            if value is None:
                del document[name]
        if brick:
            document["bricks"][0].update(brick)

    change_manifest(trio, change)
    assert expected in refusal(trio)


def test_bricks_are_in_the_order_of_their_ids_and_each_is_there_once(trio: Trio) -> None:
    for change in (lambda it: it["bricks"].append(it["bricks"][-1]), lambda it: it["bricks"].reverse()):
        change_manifest(trio, change)
        assert "not in the order of their ids, or two of one id" in refusal(trio)


def test_a_folder_that_is_not_a_suite_is_refused_with_advice(tmp_path: Path) -> None:
    with pytest.raises(BrokenSuiteError, match="suite export"):
        SuiteFolder(tmp_path)


# From here on the manifest agrees with the file, and the file itself is the attack.


def _widest(document: Document) -> tuple[int, int]:
    nodes = document["nodes"]
    return len(nodes), max(int(node.get("attrs", {}).get("num_filter", 0)) for node in nodes)


def network_of(trio: Trio, change: Callable[[Document], object]) -> bytes:
    """Change the file of the brick with the widest convolution among its inputs."""
    suite = SuiteFolder(trio.suite)
    files = (json.loads(suite.network(brick)) for brick in suite.manifest.bricks)
    document: Document = max(files, key=_widest)
    change(document)
    return json.dumps(document).encode()


def refused(content: bytes, most_bytes: int = GIBIBYTE, level: Level = Level.WRITTEN) -> str:
    framework = TableFramework()
    with pytest.raises(BrokenBrickError) as error:
        MXNetReader(framework, level, most_bytes).read(content)
    return one_line(error.value)


def set_shape(shape: str) -> Callable[[Document], object]:
    return lambda document: document["nodes"][0]["attrs"].update(__shape__=shape)


def test_a_huge_shape_is_refused_before_anything_is_computed(trio: Trio) -> None:
    framework = TableFramework()
    content = network_of(trio, set_shape("(1000000, 1000000)"))
    with pytest.raises(BrokenBrickError, match="GiB of memory"):
        MXNetReader(framework, Level.WRITTEN, GIBIBYTE).read(content)
    assert not framework.asked
    # Those that follow from small ones are refused, too.
    assert "GiB of memory" in refused(network_of(trio, lambda document: None), most_bytes=60_000)


@pytest.mark.parametrize(
    "shape", ["", "()", "(0, 1)", "(-1, 3)", "(1.5, 2)", "(None, 3)", "(1, x)", "1e400", "(" + "1," * 40]
)
def test_an_invalid_shape_is_refused(trio: Trio, shape: str) -> None:
    assert "of the shape" in refused(network_of(trio, set_shape(shape)))


@pytest.mark.parametrize("op", ["Custom", "_NDArray", "_Native", "_cvimread", "_sg_mkldnn_conv", "Sabotage", "rm -rf"])
def test_operators_that_run_code_or_read_files_are_refused(trio: Trio, op: str) -> None:
    content = network_of(trio, lambda document: document["nodes"][-1].update(op=op))
    assert op in refused(content)
    inner = {"nodes": [{"op": "null", "name": "a", "inputs": []}], "heads": [[0, 0, 0]]}
    content = network_of(trio, lambda document: document["nodes"][-1].update(op="_foreach", subgraphs=[inner]))
    assert "graph inside" in refused(content)


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document["nodes"][-1]["attrs"].update(secret="yes"),
        lambda document: document["nodes"][-1]["attrs"].update(__secret__="yes"),
        lambda document: document["nodes"][-1]["attrs"].update(__layer__="../1"),
        lambda document: document["nodes"][-1]["attrs"].update(__times__="9"),
        lambda document: document["nodes"][-1]["attrs"].pop("__layer__"),
        lambda document: document["nodes"][-1].update(name="\x1b[31m"),
        lambda document: document["nodes"][0].update(name="../../data0"),
        lambda document: document["nodes"][0]["attrs"].update(__dtype__="99"),
        lambda document: document["nodes"][0]["attrs"].update(__layer__="0"),
        lambda document: document["nodes"][0]["attrs"].update(note="hello"),
        lambda document: document["nodes"].append({"op": "relu", "name": "op9", "inputs": [[99, 0, 0]]}),
        lambda document: document.update(heads=[]),
    ],
)
def test_a_network_with_anything_unneeded_is_refused(trio: Trio, change: Callable[[Document], object]) -> None:
    assert refused(network_of(trio, change)), "in a line that says why"


def test_a_layer_that_fuses_into_two_is_refused(trio: Trio) -> None:
    def merge(document: Document) -> None:
        for node in document["nodes"]:
            if node["op"] != "null":
                node["attrs"]["__layer__"] = "0"

    # Convolution, relu and pooling: the framework of this test takes in the relu, and leaves the pooling out.
    told = refused(network_of(trio, merge), level=Level.FUSED)
    assert "must be one" in told


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda values: st.lists(values, max_size=4) | st.dictionaries(st.text(max_size=8), values, max_size=4),
    max_leaves=12,
)
NODE = st.fixed_dictionaries(
    {"op": st.sampled_from(["null", "relu", "Pooling", "Concat"]) | st.text(max_size=8)},
    optional={
        "name": st.sampled_from(["data0", "weight0", "op0", "constant0"]) | JSON,
        "attrs": st.dictionaries(
            st.sampled_from(["__shape__", "__dtype__", "__layer__", "kernel", "dim", "num_args"]),
            st.sampled_from(["(1, 8)", "0", "1", "(2, 2)", "99999999999999999999", ""]) | st.text(max_size=6),
        )
        | JSON,
        "inputs": st.lists(st.lists(st.integers(-1, 4), max_size=3), max_size=3) | JSON,
        "subgraphs": JSON,
    },
)


@given(st.lists(NODE | JSON, max_size=5), st.lists(st.lists(st.integers(-1, 4), max_size=3), max_size=2) | JSON)
def test_any_network_is_refused_with_one_line_or_read(nodes: list[Any], heads: Any) -> None:
    content = json.dumps({"nodes": nodes, "heads": heads}).encode()
    for level in Level:
        try:
            MXNetReader(TableFramework(), level, GIBIBYTE).read(content)
        except BrokenBrickError as error:
            assert one_line(error), "it says why"


@given(JSON, JSON, JSON)
def test_any_manifest_is_refused_with_one_line_or_read(suite: Any, level: Any, bricks: Any) -> None:
    head = {**HEAD, "suite": suite, "level": level, "bricks": bricks}
    with pytest.raises(BrokenSuiteError) as refused_manifest:
        read_manifest(json.dumps(head).encode(), "suite.json")
    one_line(refused_manifest.value)


# Results from elsewhere are not to be trusted either: each lie that can be seen is refused in a line.
KEPT = "kept.json"


@pytest.fixture(scope="module")
def measured(measured_suite: Trio, tmp_path_factory: pytest.TempPathFactory) -> Trio:
    trio = Trio(tmp_path_factory.mktemp("hostile") / "trio")
    copytree(measured_suite.path, trio.path)
    (trio.path / KEPT).write_bytes(trio.results.read_bytes())
    return trio


@pytest.fixture
def answered(measured: Trio) -> Trio:
    """The state after measuring, with the original file of results."""
    measured.results.write_bytes((measured.path / KEPT).read_bytes())
    return measured


def forge(answered: Trio, change: Callable[[Document], object], *, reseal: bool = True) -> None:
    """Change the file, and by default correct its hash as an attacker would."""
    document = json.loads(answered.results.read_bytes())
    change(document)
    if reseal:
        document.pop("check", None)
        document["check"] = sha256(json.dumps(document, sort_keys=True).encode())
    answered.results.write_text(json.dumps(document))


def refusal_of_results(answered: Trio) -> str:
    with pytest.raises(ShareError) as refused:
        answered.bring_home()
    told = one_line(refused.value)
    assert not answered.owner.contents().measurements
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
    with pytest.raises(ShareError, match="nowhere"):
        read_results(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda document: rename(document, "f" * 32), "an id that no suite has"),
        # As an earlier version timed the bricks of MXNet models.
        (lambda document: first(document).update(protocol="alone-1"), "was measured by the method 'alone-1', this"),
        (lambda document: part(document)["failed"].update({"f" * 32: "hung"}), "does not hold"),
        (lambda document: rename(document, "../../store"), "an id that no suite has"),
        (lambda document: rename(document, ""), "an id that no suite has"),
        (lambda document: first(document).update(brick="f" * 32), "that names another brick"),
        (lambda document: document.update(manifest_sha256="0" * 64), "changed after it was exported"),
        (lambda document: document.update(suite="0" * 32), "there is no key"),
        # The store checks statistics and samples alike wherever they come from.
        (lambda document: first(document)["statistics"].update(median_ms=99.0), "median that does not follow"),
        (lambda document: first(document).update(samples_ms=[]), "has 0 samples"),
        *(
            (lambda document, changes=changes: first(document).update(changes), "")
            for changes in (
                {"system": "another"},
                {"runtime": "another"},
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
        (lambda document: document["system"].update(cores=-2), "a count below zero"),
        (lambda document: document["system"].update(cores=960), "with 960 cores instead of"),
        (lambda document: document["system"].update(memory_bytes=10**300), "an impossibly large number"),
        (lambda document: part(document)["runtime"].update(threads=-1), "a count below zero"),
        (lambda document: first(document)["noise"].update(reference_ms=1e300), "an impossibly large number"),
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
def test_a_forged_file_is_refused(answered: Trio, change: Callable[[Document], object], expected: str) -> None:
    forge(answered, change)
    assert expected in refusal_of_results(answered)


def test_a_file_that_was_changed_is_refused(answered: Trio) -> None:
    text = answered.results.read_text()
    forge(answered, lambda document: document.update(suite="0" * 32), reseal=False)
    assert "does not agree with its hash" in refusal_of_results(answered)
    for word in ("NaN", "Infinity", "1e999"):
        answered.results.write_text(text.replace('"samples_ms": [', f'"samples_ms": [{word}, ', 1))
        refusal_of_results(answered)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (gzip.compress(b" " * (1 << 24)), "does not begin like one"),
        (b" " * ((1 << 20) + 1), "more than 1 MiB"),
        (b'{"format":' + b"[" * 200_000, "nests too deep"),
    ],
)
def test_a_huge_or_deep_file_is_refused(
    answered: Trio, monkeypatch: pytest.MonkeyPatch, content: bytes, expected: str
) -> None:
    monkeypatch.setattr(results_file, "MOST_BYTES", 1 << 20)
    answered.results.write_bytes(content)
    assert expected in refusal_of_results(answered)


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
