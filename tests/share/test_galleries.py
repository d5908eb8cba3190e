"""Folders of results: what is taken, what is left out, who is named, and what is hostile."""

import dataclasses
import gzip
import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.api import store_contents
from dlbricks_tui.cli.main import main
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.share import signatures
from dlbricks_tui.share.errors import GalleryError, SignatureError
from dlbricks_tui.share.galleries import Imported, Trust, import_paths
from dlbricks_tui.share.signatures import export_signed, signature_beside, signers_of, verified
from dlbricks_tui.store import exchange
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.documents import Document, to_document
from dlbricks_tui.store.exchange import export_all
from dlbricks_tui.store.records import Import, Measurement, Provenance, Record, Run, System
from tests.store.samples import brick, end_to_end, form, measurement, provenance, run, runtime, system, write_file
from tests.store.samples import imported as import_record

LATER = "2026-11-22T08:00:00.000000+00:00"


def ssh_key(path: Path, passphrase: str = "") -> Path:
    """Make a private key, with its public one beside it."""
    asked = ["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", "", "-f", str(path)]
    subprocess.run(asked, check=True, stdin=subprocess.DEVNULL)
    return path


def allow(data: DataFolder, name: str, key: Path) -> None:
    """Trust a key of somebody."""
    with data.allowed_signers.open("a") as file:
        file.write(f"{name} {key.with_name(key.name + '.pub').read_text()}")


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


def test_a_folder_is_refused_before_any_file_is_imported(
    gallery: Path, data: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dlbricks_tui.share.galleries._MOST_FILES", 1)
    with pytest.raises(GalleryError, match="name a folder in it"):
        imported(data, gallery)
    assert listed(data, "system") == []


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


# `tests/store/test_exchange.py` has more that no file may hold.
HOSTILE: dict[str, tuple[Callable[[Path], object], str]] = {
    "this host as another machine": (records(to_document(ELSEWHERE)), "processor 'Another CPU' instead of"),
    "a known system as another machine": (
        records(to_document(system(cores=96))),
        "with 96 cores instead of 4",
    ),
    "results of another machine under a known id": (
        lambda path: write_file(path, SEEN[0], to_document(system(cpu="Abacus")), changed(), changed(uuid="0d" * 16)),
        "which the file describes as another machine",
    ),
    "control characters": (records(changed(system="\x1b[2J\n")), "\\x1b[2J"),
    "a decompression bomb": (
        lines(gzip.compress(b'{"dlbricks": {\n' + b"\n" * (2 << 20))),
        "unlike any export",
    ),
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
        patch.setattr(exchange, "_SMALL_BYTES", 1 << 20)
        patch.setattr(exchange, "_LONGEST_LINE", 1 << 20)
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


# Signatures by the real ssh-keygen, and by minisign where it is installed; a fake one stands in elsewhere.
CONTENT = b"latencies\n"
# Knows one key, signs by repeating the content, and has the files and options of minisign.
FAKE_MINISIGN = f"""#!{sys.executable}
import base64, hashlib, sys
options = dict(zip(sys.argv[2::1], sys.argv[3::1]))
key_id = b"EDkeyident"
content = open(options["-m"], "rb").read()
proof = base64.b64encode(key_id + hashlib.sha512(content).digest()).decode()
if sys.argv[1] == "-S":
    open(options["-x"], "w").write(f"untrusted comment: fake\\n{{proof}}\\n")
else:
    sys.exit(open(options["-x"]).read().split("\\n")[1] != proof)
"""


def signed_file(folder: Path, key: Path) -> Path:
    file = folder / "day.json"
    assert export_signed(file, key, lambda path: path.write_bytes(CONTENT))[0] == len(CONTENT)
    return file


@pytest.fixture
def signed(tmp_path: Path, key: Path) -> Path:
    """A file that was signed by a key that is trusted."""
    return signed_file(tmp_path, key)


def signer_of(file: Path, data: DataFolder, *others: Path) -> str:
    """Return the signer of a file, after a check that the verified bytes are the file's."""
    signature = signature_beside(file)
    assert signature is not None
    with (
        file.open("rb") as opened,
        verified(file, opened, signature, signers_of(data, others)) as (content, signer),
    ):
        assert content.read() == file.read_bytes()
        return signer


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(SignatureError) as refused:
        call()
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_a_file_is_signed_and_its_signer_known(tmp_path: Path, data: DataFolder, signed: Path) -> None:
    assert sorted(it.name for it in tmp_path.iterdir()) == ["ann", "ann.pub", "data", "day.json", "day.json.sig"]
    assert signer_of(signed, data) == "ann@example.org"
    # As `git verify-commit` and others do it, without dlbricks.
    asked = ["-f", str(data.allowed_signers), "-I", "ann@example.org", "-n", "dlbricks-results", "-s", f"{signed}.sig"]
    with signed.open("rb") as content:
        subprocess.run(["ssh-keygen", "-Y", "verify", *asked], stdin=content, check=True, capture_output=True)


@pytest.mark.usefixtures("key")
def test_a_file_by_an_unknown_key_names_the_key_and_the_file_to_add_it_to(tmp_path: Path, data: DataFolder) -> None:
    file = signed_file(tmp_path, ssh_key(tmp_path / "bob"))
    told = refusal(lambda: signer_of(file, data))
    assert "is signed by a key that you do not trust, ED25519 key SHA256:" in told
    assert str(data.allowed_signers) in told
    data.allowed_signers.unlink()
    assert "that you do not trust" in refusal(lambda: signer_of(file, data))


def test_every_changed_byte_of_a_file_is_noticed(data: DataFolder, signed: Path) -> None:
    for place in (0, len(CONTENT) // 2, len(CONTENT) - 1):
        changed = bytearray(CONTENT)
        changed[place] ^= 1
        signed.write_bytes(changed)
        assert "was changed after it was signed" in refusal(lambda: signer_of(signed, data))
    signed.write_bytes(CONTENT + b" ")
    assert "was changed after it was signed" in refusal(lambda: signer_of(signed, data))


@pytest.mark.parametrize("damage", [lambda it: it[: len(it) // 2], lambda it: b"", lambda it: b"\x00\xff" * 500])
def test_a_damaged_signature_is_one_line(data: DataFolder, signed: Path, damage: Callable[[bytes], bytes]) -> None:
    signature = Path(f"{signed}.sig")
    signature.write_bytes(damage(signature.read_bytes()))
    assert "the signature of" in refusal(lambda: signer_of(signed, data))


def test_an_endless_signature_and_one_behind_a_link_are_refused(data: DataFolder, signed: Path) -> None:
    signature = Path(f"{signed}.sig")
    with signature.open("wb") as opened:
        opened.truncate(1 << 40)
    assert "unlike any export or signature" in refusal(lambda: signer_of(signed, data))
    signature.unlink()
    signature.symlink_to("/dev/zero")
    assert "cannot read" in refusal(lambda: signer_of(signed, data))


def test_a_signature_for_another_purpose_does_not_count(tmp_path: Path, data: DataFolder, key: Path) -> None:
    file = tmp_path / "day.json"
    file.write_bytes(CONTENT)
    asked = ["-f", str(key), "-n", "git", str(file)]
    subprocess.run(["ssh-keygen", "-Y", "sign", *asked], check=True, capture_output=True)
    assert "made for another purpose" in refusal(lambda: signer_of(file, data))


def test_the_verified_bytes_are_read_even_if_the_file_changes_meanwhile(data: DataFolder, signed: Path) -> None:
    with (
        signed.open("rb") as opened,
        verified(signed, opened, Path(f"{signed}.sig"), signers_of(data)) as (content, _),
    ):
        signed.write_bytes(b"forged after it was verified")
        assert content.read() == CONTENT


def test_a_key_with_a_passphrase_signs_with_an_agent_and_not_without_a_terminal(
    tmp_path: Path, data: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = ssh_key(tmp_path / "ann", "secret")
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    monkeypatch.delenv("SSH_ASKPASS", raising=False)
    told = refusal(lambda: signed_file(tmp_path, key))
    assert "nothing was exported" in told and "sign in a terminal, or let ssh-agent hold the key" in told
    assert not (tmp_path / "day.json").exists()
    allow(data, "ann@example.org", key)
    # As ssh-agent does, askpass answers without a terminal.
    askpass = program(tmp_path / "askpass", "#!/bin/sh\necho secret\n")
    monkeypatch.setenv("SSH_ASKPASS", str(askpass))
    monkeypatch.setenv("SSH_ASKPASS_REQUIRE", "force")
    assert signer_of(signed_file(tmp_path, key), data) == "ann@example.org"


def test_a_key_in_an_agent_is_named_by_its_public_part(tmp_path: Path, data: DataFolder, key: Path) -> None:
    agent = subprocess.run(
        ["ssh-agent", "sh", "-c", f"ssh-add -q {key} && rm {key} && exec {sys.executable} -c '{SIGN}' {tmp_path}"],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        timeout=60,
        check=False,
    )
    assert agent.returncode == 0, agent.stderr
    assert signer_of(tmp_path / "day.json", data) == "ann@example.org"


SIGN = (
    "import sys; from pathlib import Path; from dlbricks_tui.share.signatures import export_signed; "
    'folder = Path(sys.argv[1]); export_signed(folder / "day.json", folder / "ann.pub", '
    'lambda path: path.write_bytes(b"latencies\\n"))'
)


def test_what_cannot_sign_is_one_line_and_writes_nothing(tmp_path: Path) -> None:
    assert "cannot read the key" in refusal(lambda: signed_file(tmp_path, tmp_path / "none"))
    (tmp_path / "text").write_text("no key\n")
    assert "cannot sign" in refusal(lambda: signed_file(tmp_path, tmp_path / "text"))
    os.mkfifo(tmp_path / "day.json")
    assert "is not a file" in refusal(lambda: signed_file(tmp_path, ssh_key(tmp_path / "ann")))
    (tmp_path / "day.json").unlink()
    assert sorted(it.name for it in tmp_path.iterdir()) == ["ann", "ann.pub", "text"]


def test_a_missing_program_says_what_to_install(
    tmp_path: Path, data: DataFolder, monkeypatch: pytest.MonkeyPatch, signed: Path
) -> None:
    secret = tmp_path / "secret.key"
    secret.write_text("untrusted comment: minisign encrypted secret key\nRWRT\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "ssh-keygen was not found" in (told := refusal(lambda: signer_of(signed, data)))
    assert "apt-get install openssh-client" in told
    assert "minisign was not found" in (told := refusal(lambda: signed_file(tmp_path, secret)))
    assert "apt-get install minisign" in told


def test_a_program_that_hangs_is_ended(
    tmp_path: Path, data: DataFolder, monkeypatch: pytest.MonkeyPatch, signed: Path
) -> None:
    program(tmp_path / "ssh-keygen", "#!/bin/sh\nexec sleep 600\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(signatures, "_VERIFYING_S", 0.05)
    assert "gave no answer" in refusal(lambda: signer_of(signed, data))


def minisign_keys(folder: Path, monkeypatch: pytest.MonkeyPatch, real: bool) -> tuple[Path, Path]:
    """Return a secret key and its public one, of the real minisign or of a fake one that comes first on the path."""
    secret, public = folder / "ann.key", folder / "ann.pub"
    if real:
        asked = ["minisign", "-G", "-W", "-p", str(public), "-s", str(secret)]
        subprocess.run(asked, check=True, capture_output=True)
        return secret, public
    secret.write_text("untrusted comment: minisign encrypted secret key\nRWRT\n")
    public.write_text("untrusted comment: minisign public key\nRURrZXlpZGVudA==\n")
    (folder / "bin").mkdir()
    program(folder / "bin" / "minisign", FAKE_MINISIGN)
    monkeypatch.setenv("PATH", f"{folder / 'bin'}:{os.environ['PATH']}")
    return secret, public


@pytest.mark.parametrize(
    "real",
    [False, pytest.param(True, marks=pytest.mark.skipif(not shutil.which("minisign"), reason="needs minisign"))],
)
def test_minisign_signs_and_verifies_too(
    tmp_path: Path, data: DataFolder, monkeypatch: pytest.MonkeyPatch, real: bool
) -> None:
    secret, public = minisign_keys(tmp_path, monkeypatch, real)
    file = signed_file(tmp_path, secret)
    assert signature_beside(file) == Path(f"{file}.minisig")
    told = refusal(lambda: signer_of(file, data))
    assert "is signed by a key that you do not trust, minisign " in told
    assert signer_of(file, data, public) == "ann"
    data.minisign_keys.mkdir()
    shutil.copy(public, data.minisign_keys / "ann of the team.pub")
    assert signer_of(file, data) == "ann of the team"
    file.write_bytes(CONTENT.upper())
    assert "was changed after it was signed" in refusal(lambda: signer_of(file, data))
    Path(f"{file}.minisig").write_text("untrusted comment: none\n")
    assert "is damaged" in refusal(lambda: signer_of(file, data))


def program(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path
