"""Hostile files in a gallery: each is named in one line, and the good file beside it is imported."""

import gzip
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.cli import results_import
from dlbricks_tui.cli.main import main
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.store import importing
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.documents import Document, to_document
from dlbricks_tui.store.records import Measurement, Provenance, Record, Run, System
from tests.store.samples import (
    brick,
    end_to_end,
    form,
    imported,
    measurement,
    provenance,
    run,
    runtime,
    system,
    write_file,
)

OWN = measurement(5.0, uuid="0a" * 16)
GOOD = measurement(1.0, uuid="0b" * 16, brick=brick(1))
DESCRIBED: tuple[Record, ...] = (form(), form(1), system(), runtime())
SEEN: tuple[Document, ...] = tuple(map(to_document, DESCRIBED))
HERE = fingerprint()
ELSEWHERE = System(id=HERE.id, name=HERE.name, cpu="Another CPU", cores=HERE.cores + 1, memory_bytes=1 << 30)


def changed(**fields: Any) -> Document:
    return {**to_document(measurement(9.0, uuid="0c" * 16)), **fields}


def sealed(text: bytes) -> bytes:
    """Return a line of a measurement whose checksum is right."""
    line = b'{"schema":1,"table":"measurements","doc_id":1,"uuid":"' + b"0c" * 16 + b'",' + text + b"}"
    return b'{"dlbricks": {\n"1": {"check":"%08x",%s\n}}\n' % (zlib.crc32(line[1:]), line[1:])


def records(*documents: Document) -> Callable[[Path], object]:
    return lambda path: write_file(path, *SEEN, *documents)


def lines(content: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content)


def statistics(**fields: Any) -> Document:
    return {"statistics": {**to_document(measurement(9.0))["statistics"], **fields}}


HOSTILE: dict[str, tuple[Callable[[Path], object], str]] = {
    "wrong types": (records(changed(samples_ms="many")), "has a wrong value"),
    "a truth value for a number": (records(changed(batch_size=True)), "is not a whole number"),
    "missing fields": (records({"table": "measurements", "schema": 1, "uuid": "0c" * 16}), "lacks"),
    "billions of samples": (records(changed(**statistics(count=1 << 40))), "has a count that does not follow"),
    "too many samples": (records(changed(samples_ms=[1.0] * 100_001)), "has 100,001 samples"),
    "deep nesting": (lines(sealed(b'"noise":' + b"[" * 100_000 + b"]" * 100_000)), "is not JSON"),
    "not a number": (lines(sealed(b'"samples_ms":[NaN]')), "lacks"),
    "endless numbers": (records(changed(samples_ms=[1e300] * 10)), "has an impossible sample"),
    "this host as another machine": (records(to_document(ELSEWHERE)), "processor 'Another CPU' instead of"),
    "a known system as another machine": (
        records(to_document(system(cores=96))),
        "with 96 cores instead of 4",
    ),
    "results of another machine under a known id": (
        lambda path: write_file(path, SEEN[0], to_document(system(cpu="Abacus")), changed(), changed(uuid="0d" * 16)),
        "which the file describes as another machine",
    ),
    "a date in the future": (records(changed(when="2999-01-01T00:00:00+00:00")), "is from the future"),
    "a date without a time zone": (records(changed(when="2026-11-21T08:00:00")), "has no time zone"),
    "a brick under a false key": (records({**to_document(form(2)), "key": "ab" * 32}), "is not the hash"),
    "a result of nothing": (records(changed(brick="ab" * 32)), "is described nowhere"),
    "an id that is a path": (records(changed(uuid="../../store")), "is not a UUID"),
    "a table of others": (records({"table": "config", "schema": 1, "shell": "rm"}), "does not have: config"),
    "a newer schema": (records(changed(schema=99)), "was written by a newer dlbricks (schema 99"),
    "a long text": (records(changed(dtype="x" * 200_000)), "has a text of 200,000 letters"),
    "control characters": (records(changed(system="\x1b[2J\n")), "\\x1b[2J"),
    "bytes that are no text": (lines(b'{"dlbricks": {\n\xff\xfe\x00\n}}'), "is not a line that dlbricks writes"),
    "an endless line": (lines(b'{"dlbricks": {' + b" " * (1 << 21)), "has a line of more than 1 MiB"),
    "a decompression bomb": (
        lines(gzip.compress(b'{"dlbricks": {\n' + b"\n" * (2 << 20))),
        "unlike any export",
    ),
    "a packed file that was cut": (lines(gzip.compress(b'{"dlbricks": {}}')[:-9]), "is packed and incomplete"),
    "a store's own file": (lines(b'{"check":"00000000","schema":1,"table":"runs"}\n'), "is part of a store"),
}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Sequence[str]]:
    """Import all hostile files and a good one; return the lines about each file, by its name."""
    gallery, data = tmp_path_factory.mktemp("gallery"), tmp_path_factory.mktemp("data")
    files = {name: f"hostile-{number:02}.json" for number, name in enumerate(HOSTILE)}
    for name, file in files.items():
        HOSTILE[name][0](gallery / file)
    write_file(gallery / "good.json", *SEEN, to_document(GOOD))
    with ResultsDatabase(data / "store") as store:
        store.add(form(), system(), runtime(), OWN)
    out, err = StringIO(), StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        # The limits are those of large files; these are small.
        patch.setattr(importing, "_SMALL_BYTES", 1 << 20)
        patch.setattr(importing, "_LONGEST_LINE", 1 << 20)
        patch.setattr(results_import, "_MOST_NAMED", 100)
        status = main(["--data-dir", str(data), "results", "import", str(gallery)])
    assert (status, out.getvalue()) == (1, "")
    with ResultsDatabase(data / "store") as store:
        assert store.records(Measurement) == [GOOD, OWN]
        assert store.systems() == (system(),)
    lines = err.getvalue().splitlines()
    assert all(len(line) < 700 and line.isprintable() for line in lines)
    return {name: [line for line in lines if file in line] for name, file in files.items()}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_named_in_one_line_and_the_others_imported(
    told: Mapping[str, Sequence[str]], name: str
) -> None:
    # One line, and one more for the results of a system that was refused.
    assert len(told[name]) <= 1 + ("machine under" in name)
    assert HOSTILE[name][1] in told[name][-1]


def test_a_file_cannot_say_where_a_store_has_its_records_from(tmp_path: Path) -> None:
    data, file = tmp_path / "data", tmp_path / "file.json"
    with ResultsDatabase(data / "store") as store:
        store.add(form(), system(), runtime(), OWN)
    write_file(file, *SEEN, to_document(imported(OWN.uuid, GOOD.uuid)), to_document(GOOD))
    assert main(["--data-dir", str(data), "results", "import", str(file)]) == 0
    with ResultsDatabase(data / "store") as store:
        found = store.select(order=["id"])
        assert found.values("origin") == ["own", "unsigned"]


def test_duplicates_in_a_file_are_stored_once(tmp_path: Path) -> None:
    data, file = tmp_path / "data", tmp_path / "file.json"
    write_file(file, *SEEN, *[to_document(GOOD)] * 50)
    assert main(["--data-dir", str(data), "results", "import", str(file)]) == 0
    with ResultsDatabase(data / "store") as store:
        assert store.records(Measurement) == [GOOD]


def test_a_forged_file_changes_no_record_of_this_host(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Claims about this host are kept beside its own results, and never count before them."""
    data, file = tmp_path / "data", tmp_path / "file.json"
    told: tuple[Run, Provenance] = run(system=HERE.id), provenance(system=HERE.id)
    with ResultsDatabase(data / "store") as store:
        store.add(form(), HERE, runtime(), *told, end_to_end(system=HERE.id))
    later = {"system": HERE.id, "when": "2026-11-22T08:00:00.000000+00:00"}
    claims: list[Record] = [
        run(state="failed", **later),
        provenance(evaluation="forged", **later),
        end_to_end(3.0, **later),
    ]
    write_file(file, *map(to_document, claims))
    assert main(["--data-dir", str(data), "results", "import", str(file), "--json"]) == 0
    (document,) = json.loads(capsys.readouterr().out)
    assert [it["origin"] for it in document["claims"][0]["claimed"]] == ["own", "unsigned"]
    with ResultsDatabase(data / "store") as store:
        assert store.runs() == (told[0],)
        assert store.provenance_of("r1", "mxnet-1.9.1") == told[1]
