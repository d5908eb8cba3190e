"""The demonstration: a data folder full of recorded results, and the host on which they were recorded.

The package brings one packed file. `python -m docs.recording` makes it.
"""

import hashlib
import io
import json
import lzma
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dlbricks_tui.errors import UserError
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.recorded_host import RecordedHost, in_place_of_this_host
from dlbricks_tui.store.database import ResultsDatabase, numbered
from dlbricks_tui.store.documents import BrokenDocumentError, to_record

PACKED = SAMPLE_MODELS / "demonstration.tar.xz"
# The parts of the packed file: facts about it, the records of the store, and the files of the data folder.
FACTS, RESULTS, FILES = "demonstration.json", "results.jsonl", "data/"
SCHEMA = 1
# Stands in recorded files for the data folder, and for the folder of the sample models.
DATA_MARK, SAMPLES_MARK = "@DATA@", "@SAMPLES@"

_DAMAGED = (lzma.LZMAError, tarfile.TarError, BrokenDocumentError)


class DemonstrationError(UserError):
    """The recorded results of the demonstration cannot be used."""


@dataclass(frozen=True, slots=True)
class Demonstration:
    """A demonstration in a temporary data folder; `replayed` is the run that is replayed first."""

    data: DataFolder
    # The folder with the manifest of the recorded models.
    samples: Path
    host: RecordedHost
    replayed: str


@contextmanager
def open_demonstration(packed: Path = PACKED) -> Iterator[Demonstration]:
    """Provide the demonstration. Until the block ends, the recorded host takes the place of this one."""
    # A thread of the workbench may still write while the folder is removed.
    with tempfile.TemporaryDirectory(prefix="dlbricks-demo-", ignore_cleanup_errors=True) as folder:
        found = _unpacked(packed, Path(folder))
        with in_place_of_this_host(found.host):
            yield found


def _unpacked(packed: Path, folder: Path) -> Demonstration:
    data, samples = DataFolder(folder / "data"), folder / "samples"
    try:
        facts, files = _parts_of(packed)
        host = RecordedHost(facts["name"], facts["system"], facts["versions"], facts["python"], facts["recorded"])
        records = [
            to_record({"uuid": hashlib.sha256(line).hexdigest()[:32], **json.loads(line)})
            for line in files.pop(RESULTS).splitlines()
        ]
        found = Demonstration(data, samples, host, facts["replayed"])
        entries = json.loads((SAMPLE_MODELS / "manifest.json").read_bytes())["models"]
        kept = [_with_whole_paths(entry) for entry in entries if entry["name"] in frozenset(facts["models"])]
        samples.mkdir(parents=True)
        (samples / "manifest.json").write_text(json.dumps({"models": kept}))
    except OSError as error:
        raise DemonstrationError(f"{packed} cannot be read ({error.strerror}): install dlbricks-tui again") from error
    except (ValueError, LookupError, TypeError, EOFError, *_DAMAGED) as error:
        raise DemonstrationError(
            f"{packed.name} does not suit this version ({error}): install dlbricks-tui again, or record it anew in a "
            "checkout: python -m docs.recording"
        ) from error
    for name, content in files.items():
        path = data.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(
            content.replace(DATA_MARK.encode(), bytes(data.path)).replace(SAMPLES_MARK.encode(), bytes(SAMPLE_MODELS))
        )
    with ResultsDatabase(data.store) as store:
        store.add(*numbered(records))
    return found


def _parts_of(packed: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the facts about a packed file, and the contents of its other parts by their names."""
    with tarfile.open(fileobj=io.BytesIO(packed.read_bytes()), mode="r:xz") as archive:
        parts = {
            member.name.removeprefix(FILES): file.read()
            for member in archive.getmembers()
            if (file := archive.extractfile(member)) is not None
        }
    facts: dict[str, Any] = json.loads(parts.pop(FACTS))
    if facts["schema"] != SCHEMA:
        raise ValueError(f"its schema is {facts['schema']!r}")
    return facts, parts


def _with_whole_paths(entry: dict[str, Any]) -> dict[str, Any]:
    found = entry | {name: str(SAMPLE_MODELS / entry[name]) for name in ("file", "types") if name in entry}
    return found | ({"onnx": _with_whole_paths(entry["onnx"])} if "onnx" in entry else {})
