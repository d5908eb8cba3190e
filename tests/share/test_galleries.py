"""Folders of results: what is taken, what is left out, who is named, and what is hostile."""

import dataclasses
import gzip
import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.answers import store_contents
from dlbricks_tui.cli.main import main
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.share.errors import GalleryError, SignatureError
from dlbricks_tui.share.galleries import Imported, Trust, import_paths
from dlbricks_tui.share.signatures import export_signed, signers_of
from dlbricks_tui.store import importing
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.documents import Document, to_document
from dlbricks_tui.store.exporting import export_all
from dlbricks_tui.store.records import Import, Measurement, Provenance, Record, Run, System
from tests.share.signing import allow, ssh_key
from tests.store.samples import brick, end_to_end, form, measurement, provenance, run, runtime, system, write_file
from tests.store.samples import imported as import_record

LATER = "2026-11-22T08:00:00.000000+00:00"


@pytest.fixture
def data(tmp_path: Path) -> DataFolder:
    (tmp_path / "data").mkdir()
    return DataFolder(tmp_path / "data")


@pytest.fixture
def gallery(tmp_path: Path) -> Path:
    """A folder as a git repository has it: two hosts, with other files beside them."""
    folder = tmp_path / "gallery"
    for host, latency_ms in (("fast", 1.0), ("slow", 3.0)):
        (folder / host).mkdir(parents=True)
        publish(folder / host / "2026-11-21.json", measurement(latency_ms, system=host, uuid=host_uuid(host)))
    (folder / ".git").mkdir()
    publish(folder / ".git" / "index.json", measurement(9.0, system="hidden"))
    publish(folder / "fast" / ".draft.json", measurement(9.0, system="hidden"))
    (folder / "README.md").write_text("Results of our hosts.\n")
    (folder / "package.json").write_text('{"name": "a web page"}')
    (folder / "empty.json").write_bytes(b"")
    return folder


def host_uuid(host: str) -> str:
    return host.encode().hex().ljust(32, "0")


def publish(path: Path, *results: Record, signed_by: Path | None = None) -> Path:
    """Write results with what they refer to, as `dlbricks results export` does."""
    with ResultsDatabase(path.parent.parent / f".store-{path.parent.name}-{path.stem}") as store:
        names = {it.system for it in results if hasattr(it, "system")}
        store.add(form(), form(1), runtime(), *map(system, sorted(names)), *results)
        if signed_by is None:
            export_all(store, path)
        else:
            export_signed(path, signed_by, lambda draft: export_all(store, draft))
    return path


def imported(data: DataFolder, *paths: Path, required: bool = False, ignored: bool = False) -> Imported:
    with ResultsDatabase(data.store) as store:
        return import_paths(store, paths, Trust(signers_of(data), required, ignored))


@pytest.fixture
def key(data: DataFolder, tmp_path: Path) -> Path:
    """A key that is trusted."""
    found = ssh_key(tmp_path / "ann")
    allow(data, "ann@example.org", found)
    return found


def listed(data: DataFolder, column: str) -> list[str]:
    with ResultsDatabase(data.store) as store:
        return sorted(store.select().values(column))


def test_all_files_of_a_folder_are_imported_without_hidden_ones_links_and_others(
    gallery: Path, data: DataFolder, tmp_path: Path
) -> None:
    outside = publish(tmp_path / "elsewhere.json", measurement(system="outside"))
    (gallery / "link.json").symlink_to(outside)
    (gallery / "linked").symlink_to(outside.parent, target_is_directory=True)
    done = imported(data, gallery)
    (path,) = done.paths
    assert [it.name for it in path.files] == ["fast/2026-11-21.json", "slow/2026-11-21.json"]
    assert (path.ignored, done.complete, done.claims) == (2, True, ())
    assert listed(data, "system") == ["fast", "slow"]
    assert set(listed(data, "origin")) == {"unsigned"}
    # A second import adds nothing.
    (again,) = imported(data, gallery).paths
    assert [(it.report.new, it.report.known) for it in again.files] == [(0, 5), (0, 5)]
    with ResultsDatabase(data.store) as store:
        assert [it.file for it in store.records(Import)] == ["fast/2026-11-21.json", "slow/2026-11-21.json"]


def test_a_broken_file_is_named_and_the_others_are_imported(gallery: Path, data: DataFolder) -> None:
    packed = gzip.compress((gallery / "fast" / "2026-11-21.json").read_bytes())
    (gallery / "cut.json.gz").write_bytes(packed[: len(packed) // 2])
    write_file(gallery / "new.json", {**to_document(form()), "schema": 99})
    done = imported(data, gallery)
    refused = {it.name: it.refusal for it in done.paths[0].files if it.refusal}
    assert refused.keys() == {"cut.json.gz", "new.json"}
    assert "is packed and incomplete" in refused["cut.json.gz"]
    assert "was written by a newer dlbricks (schema 99" in refused["new.json"]
    assert not any("\n" in it for it in refused.values())
    assert not done.complete
    assert listed(data, "system") == ["fast", "slow"]


def test_a_folder_without_results_is_one_line(data: DataFolder, tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "package.json").write_text("{}")
    with pytest.raises(GalleryError, match="has no files of results"):
        imported(data, tmp_path / "none")


def test_results_remember_who_signed_them_and_unsigned_files_can_be_refused(
    gallery: Path, data: DataFolder, key: Path
) -> None:
    signed = publish(gallery / "fast" / "2026-11-22.json", measurement(1.1, system="fast", when=LATER), signed_by=key)
    done = imported(data, gallery, required=True)
    assert ["is not signed" in it.refusal for it in done.paths[0].files] == [True, False, True]
    assert len(listed(data, "id")) == 1
    with pytest.raises(SignatureError, match="is not signed"):
        imported(data, gallery / "slow" / "2026-11-21.json", required=True)
    assert imported(data, signed, required=True).complete
    done = imported(data, gallery)
    assert [it.signer for it in done.paths[0].files] == ["", "ann@example.org", ""]
    assert listed(data, "origin") == ["signed by ann@example.org", "unsigned", "unsigned"]


def test_a_file_by_another_key_is_refused_unless_signatures_are_ignored(
    gallery: Path, data: DataFolder, tmp_path: Path
) -> None:
    signed = publish(
        gallery / "fast" / "new.json", measurement(1.1, system="fast"), signed_by=ssh_key(tmp_path / "bob")
    )
    done = imported(data, gallery)
    assert ["do not trust" in it.refusal for it in done.paths[0].files] == [False, True, False]
    with pytest.raises(SignatureError, match="do not trust"):
        imported(data, signed)
    (path,) = imported(data, signed, ignored=True).paths
    assert (path.files[0].report.new, path.files[0].signer) == (1, "")


def test_conflicting_claims_are_kept_and_shown(
    gallery: Path, data: DataFolder, key: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(gallery / "slow" / "claim.json", measurement(1.0, system="slow"), signed_by=key)
    status = main(["--data-dir", str(data.path), "results", "import", str(gallery)])
    out, err = capsys.readouterr()
    assert (status, out) == (0, "")
    assert err.splitlines()[1:] == [
        "claims about 1 result contradict each other; estimates use the first of each:",
        "Convolution 3x3/2 1x64x56x0 plain on slow by mxnet-1.9.1: 1.020 ms in slow/claim.json (signed by "
        "ann@example.org), 3.060 ms in slow/2026-11-21.json (unsigned)",
    ]
    assert len(listed(data, "id")) == 3


def test_a_record_with_a_known_id_and_other_content_is_kept_beside_it_and_named(
    gallery: Path, data: DataFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    imported(data, gallery / "fast")
    forged = dataclasses.replace(measurement(0.1, system="fast"), uuid=host_uuid("fast"))
    publish(gallery / "fast" / "forged.json", forged)
    status = main(["--data-dir", str(data.path), "results", "import", "--json", str(gallery)])
    out, err = capsys.readouterr()
    (document,) = json.loads(out)
    (conflict,) = document["conflicts"]
    assert (status, conflict["stored"]) == (0, host_uuid("fast"))
    assert f"{host_uuid('fast')} differs in fast/forged.json, whose record is kept beside it" in err
    (claim,) = document["claims"]
    assert {it["file"] for it in claim["claimed"]} == {"fast/2026-11-21.json", "fast/forged.json"}
    assert [it["name"] for it in document["files"]] == [
        "fast/2026-11-21.json",
        "fast/forged.json",
        "slow/2026-11-21.json",
    ]


def test_the_command_signs_requires_and_ignores(
    data: DataFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key, file = ssh_key(tmp_path / "ann"), tmp_path / "day.json"
    with ResultsDatabase(data.store) as store:
        store.add(form(), system(), runtime(), measurement())
    other = str(tmp_path / "other")

    def dlbricks(folder: str, *arguments: str) -> tuple[int, str]:
        status = main(["--data-dir", folder, "results", *arguments])
        return status, capsys.readouterr().err

    asked = ("export", str(file), "--sign", str(key))
    assert dlbricks(str(data.path), *asked) == (0, f"1 result written to {file}, with the signature {file}.sig\n")
    status, err = dlbricks(other, "import", str(file))
    assert (status, err.count("\n")) == (2, 1)
    assert "do not trust" in err
    signers = tmp_path / "signers"
    signers.write_text(f"ann@example.org {(tmp_path / 'ann.pub').read_text()}")
    status, err = dlbricks(other, "import", "--require-signature", "--signers", str(signers), str(file))
    assert (status, err) == (0, f"{file}: 4 new records, 0 known before, signed by ann@example.org\n")
    # A new export without a signature removes that of the former one.
    assert dlbricks(str(data.path), "export", str(file), "--force")[0] == 0
    status, err = dlbricks(other, "import", "--require-signature", str(file))
    assert (status, "is not signed" in err) == (2, True)
    assert dlbricks(other, "import", "--require-signature", "--ignore-signatures", str(file))[0] == 2
    assert dlbricks(other, "import", "--signers", str(tmp_path / "none"), str(file))[0] == 2


def test_names_with_control_characters_are_spelled_out(
    gallery: Path, data: DataFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = gallery / "a\x1b[2J\nb"
    folder.mkdir()
    publish(folder / "c\r.json", measurement(system="fast", brick=brick(1)))
    (folder / "d\x07.json.gz").write_bytes(b"\x1f\x8bno gzip")
    status = main(["--data-dir", str(data.path), "results", "import", str(gallery)])
    err = capsys.readouterr().err
    assert status == 1
    assert "d\\x07.json.gz is packed and incomplete" in err
    assert not set("\x1b\r\x07") & set(err)
    with ResultsDatabase(data.store) as store:
        assert store.records(Import)[0].file == "a\\x1b[2J\\nb/c\\r.json"


def test_files_that_cannot_be_read_and_pipes_are_named(
    gallery: Path, data: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(gallery / "pipe.json")
    (gallery / "secret.json").write_text("{}")
    opened = os.open

    def refuse(path: str, *options: int) -> int:
        if str(path).endswith("secret.json"):
            raise PermissionError(13, "Permission denied")
        return opened(path, *options)

    monkeypatch.setattr(os, "open", refuse)
    done = imported(data, gallery)
    refused = [it.refusal for it in done.paths[0].files if it.refusal]
    assert [it.partition(str(gallery))[2] for it in refused] == [
        "/pipe.json: it is not a regular file",
        "/secret.json: Permission denied",
    ]


OWN = measurement(5.0, uuid="0a" * 16)
GOOD = measurement(1.0, uuid="0b" * 16, brick=brick(1))
DESCRIBED: tuple[Record, ...] = (form(), form(1), system(), runtime())
SEEN: tuple[Document, ...] = tuple(map(to_document, DESCRIBED))
HERE = fingerprint()
ELSEWHERE = System(id=HERE.id, name=HERE.name, cpu="Another CPU", cores=HERE.cores + 1, memory_bytes=1 << 30)


def changed(**fields: Any) -> Document:
    return {**to_document(measurement(9.0, uuid="0c" * 16)), **fields}


def records(*documents: Document) -> Callable[[Path], object]:
    return lambda path: write_file(path, *SEEN, *documents)


def lines(content: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content)


HOSTILE: dict[str, tuple[Callable[[Path], object], str]] = {
    "wrong types": (records(changed(samples_ms="many")), "has a wrong value"),
    "this host as another machine": (records(to_document(ELSEWHERE)), "processor 'Another CPU' instead of"),
    "a known system as another machine": (
        records(to_document(system(cores=96))),
        "with 96 cores instead of 4",
    ),
    "results of another machine under a known id": (
        lambda path: write_file(path, SEEN[0], to_document(system(cpu="Abacus")), changed(), changed(uuid="0d" * 16)),
        "which the file describes as another machine",
    ),
    "a table of others": (records({"table": "config", "schema": 1, "shell": "rm"}), "does not have: config"),
    "a newer schema": (records(changed(schema=99)), "was written by a newer dlbricks (schema 99"),
    "control characters": (records(changed(system="\x1b[2J\n")), "\\x1b[2J"),
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
        patch.setattr(store_contents, "_MOST_NAMED", 100)
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
    write_file(file, *SEEN, to_document(import_record(OWN.uuid, GOOD.uuid)), to_document(GOOD))
    assert main(["--data-dir", str(data), "results", "import", str(file)]) == 0
    with ResultsDatabase(data / "store") as store:
        found = store.select(order=["id"])
        assert found.values("origin") == ["own", "unsigned"]


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
