"""Folders of results: what is taken, what is left out, and who is named."""

import dataclasses
import gzip
import json
import os
from pathlib import Path

import pytest

from dlbricks_tui.cli.main import main
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.share.errors import GalleryError, SignatureError
from dlbricks_tui.share.galleries import Imported, Trust, import_paths
from dlbricks_tui.share.signatures import export_signed, signers_of
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.documents import to_document
from dlbricks_tui.store.exporting import export_all
from dlbricks_tui.store.records import Import, Record
from tests.share.signing import allow, ssh_key
from tests.store.samples import brick, form, measurement, runtime, system, write_file

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


def test_a_second_import_adds_nothing(gallery: Path, data: DataFolder) -> None:
    first, second = imported(data, gallery), imported(data, gallery)
    assert [it.report.new for it in first.paths[0].files] == [5, 2]
    assert [(it.report.new, it.report.known) for it in second.paths[0].files] == [(0, 5), (0, 5)]
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


def test_a_signed_file_is_taken_for_one_even_if_its_beginning_was_changed(
    gallery: Path, data: DataFolder, tmp_path: Path
) -> None:
    signed = publish(gallery / "a.json", measurement(system="fast"), signed_by=ssh_key(tmp_path / "bob"))
    signed.write_bytes(signed.read_bytes().replace(b'"dlbricks"', b'"something"'))
    done = imported(data, gallery)
    assert "was changed after it was signed" in done.paths[0].files[0].refusal


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
