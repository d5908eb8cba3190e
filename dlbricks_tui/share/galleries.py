"""Import files of results, one by one or all of a folder: a gallery, in which a team publishes them."""

import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import BinaryIO

from dlbricks_tui.files import open_regular
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.printable import printable
from dlbricks_tui.share.errors import GalleryError, SignatureError
from dlbricks_tui.share.results_file import has_suite_results
from dlbricks_tui.share.signatures import Signers, signature_beside, verified
from dlbricks_tui.store.claims import Claim, conflicting_claims
from dlbricks_tui.store.database import ResultsDatabase, Source
from dlbricks_tui.store.documents import ExchangeError, OtherVersionError
from dlbricks_tui.store.exchange import ImportReport, import_file, is_export
from dlbricks_tui.store.verification import References

_ENDINGS = (".json", ".json.gz")
_MOST_FILES = 100_000


@dataclass(frozen=True, slots=True)
class Trust:
    """The requirements on the signatures of files."""

    signers: Signers
    # Refuse unsigned files.
    required: bool = False
    # Import signed files as if they were unsigned.
    ignored: bool = False


@dataclass(slots=True)
class ImportedFile:
    """The outcome for a file: a report, or else the reason why it was refused."""

    path: Path
    # The name in the store and in claims: that in the gallery.
    name: str
    report: ImportReport = field(default_factory=ImportReport)
    signer: str = ""
    refusal: str = ""

    @property
    def source(self) -> Source:
        """The file as a source of records."""
        return Source(self.name, self.signer)


@dataclass(slots=True)
class ImportedPath:
    """The outcome for a file or a folder that the user named."""

    path: Path
    files: list[ImportedFile]
    is_folder: bool = False
    # Files of a folder that are no results.
    ignored: int = 0

    @property
    def complete(self) -> bool:
        """True if no file and no record was refused."""
        return not any(it.refusal or it.report.refused for it in self.files)


@dataclass(frozen=True, slots=True)
class Imported:
    """The outcome for all paths, and the claims in them that contradict others in the store."""

    paths: tuple[ImportedPath, ...]
    claims: tuple[Claim, ...]

    @property
    def complete(self) -> bool:
        """True if no file and no record was refused."""
        return all(it.complete for it in self.paths)


def import_paths(store: ResultsDatabase, paths: Sequence[Path], trust: Trust) -> Imported:
    """Import files, and all files of results in folders.

    A file that cannot be imported raises an error if the user named it. In a folder it is named, and the others are
    imported.
    """
    # Results by others may not be of this host under another description, even before it has any of its own.
    take = partial(_imported, store, trust, References.of(store.generation, fingerprint()))
    done = tuple(_folder(path, take) if path.is_dir() else _named_file(path, take) for path in paths)
    store.refresh()
    sources = {uuid: it.source for one in done for it in one.files for uuid in it.report.results}
    return Imported(done, conflicting_claims(store, sources))


# Imports an open file under a name.
_Take = Callable[[Path, str, BinaryIO], ImportedFile]


def _named_file(path: Path, take: _Take) -> ImportedPath:
    """Import a file that the user named."""
    if has_suite_results(path):
        raise GalleryError(
            f"{path} has results of a suite: `dlbricks suite import` imports them, where the suite was exported"
        )
    try:
        file = open_regular(path)
    except OSError as error:
        raise ExchangeError(f"cannot read {path}: {error.strerror}") from error
    with file:
        return ImportedPath(path, [take(path, printable(path.name), file)])


def _folder(folder: Path, take: _Take) -> ImportedPath:
    """Import all files of results in a folder and its folders."""
    found = ImportedPath(folder, [], is_folder=True)
    for path in _candidates(folder):
        name = printable(str(path.relative_to(folder)))
        try:
            with open_regular(path, follow_links=False) as file:
                if signature_beside(path) is None and not is_export(file):
                    found.ignored += 1
                    continue
                found.files.append(take(path, name, file))
        except OSError as error:
            found.files.append(ImportedFile(path, name, refusal=f"cannot read {path}: {error.strerror}"))
        except (ExchangeError, OtherVersionError, SignatureError) as error:
            found.files.append(ImportedFile(path, name, refusal=str(error)))
    if not found.files:
        raise GalleryError(
            f"{folder} has no files of results: they are written by `dlbricks results export`, and end in .json "
            "or .json.gz"
        )
    return found


def _imported(
    store: ResultsDatabase, trust: Trust, known: References, path: Path, name: str, file: BinaryIO
) -> ImportedFile:
    signature = None if trust.ignored else signature_beside(path)
    if signature is None and trust.required:
        raise SignatureError(f"{path} is not signed: ask its author for a signature, FILE.sig or FILE.minisig")
    opened = nullcontext((file, "")) if signature is None else verified(path, file, signature, trust.signers)
    with opened as (content, signer):
        imported = ImportedFile(path, name, signer=signer)
        imported.report = import_file(store, path, content, imported.source, known)
    return imported


def _candidates(folder: Path) -> list[Path]:
    """Return the files that may have results, in the order of their names, without links and hidden files.

    A folder that is refused is so before any file of it is imported.
    """

    def refuse(error: OSError) -> None:
        raise GalleryError(f"cannot read {error.filename or folder}: {error.strerror}")

    found: list[Path] = []
    for parent, folders, names in os.walk(folder, onerror=refuse, followlinks=False):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(parent, name)
            if name.startswith(".") or not name.lower().endswith(_ENDINGS) or path.is_symlink():
                continue
            found.append(path)
            if len(found) > _MOST_FILES:
                raise GalleryError(f"{folder} has more than {_MOST_FILES:,} files of results: name a folder in it")
    return found
