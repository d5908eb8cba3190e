"""Writing the whole store into one TinyDB file, and clearing away what it replaces."""

from contextlib import suppress
from pathlib import Path

from dlbricks_tui.atomic_write import DRAFT_SUFFIX, replace_file
from dlbricks_tui.store.documents import TABLES
from dlbricks_tui.store.errors import DamagedResultError, cannot_write
from dlbricks_tui.store.files import write_tinydb_file
from dlbricks_tui.store.folder import base_name, journal_name, layout_of
from dlbricks_tui.store.generation import Generation


def compact(generation: Generation) -> Path:
    """Makes a new generation of what is stored and returns its file; the caller holds the store's lock.

    The file gets its name when it is whole and on the disk: from then on it counts, until then the files before it do.
    """
    folder, number = generation.folder, generation.layout.newest
    path = folder / base_name(number + 1)
    for row in _all_rows(generation):
        # What cannot be read any more joins the damage.
        with suppress(DamagedResultError):
            generation.document(row)
    rows = _all_rows(generation)
    aside = [b"%s\n%s\n" % (str(each).encode(), generation.damaged_bytes(each)) for each in generation.damage]
    try:
        if aside:
            replace_file(folder / f"set-aside-{number}.txt", lambda file: file.writelines(aside))
        replace_file(path, lambda file: write_tinydb_file(file, generation.texts(rows), len(rows)))
    except OSError as error:
        raise cannot_write(path, error) from error
    _clear_away(folder, number)
    return path


def _all_rows(generation: Generation) -> list[int]:
    return [row for table in TABLES for row in generation.index.rows_of(table).tolist()]


def _clear_away(folder: Path, kept: int) -> None:
    layout = layout_of(folder)
    names = [base_name(number) for number in layout.bases if number < kept]
    names += [journal_name(number) for number in layout.journals if number < kept]
    # What writers left that were killed in the middle of a file.
    names += [draft.name for draft in folder.glob(f"*{DRAFT_SUFFIX}")]
    for name in names:
        with suppress(OSError):
            (folder / name).unlink()
