"""Reading everything there is, as if nothing were known of it."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dlbricks_tui.store.errors import DamagedResultError
from dlbricks_tui.store.files import Damage
from dlbricks_tui.store.folder import layout_of
from dlbricks_tui.store.generation import Generation
from dlbricks_tui.store.queries import counts


@dataclass(frozen=True, slots=True)
class Verification:
    """What the store's files hold, and what of it cannot be read."""

    # Bytes by name.
    files: Mapping[str, int]
    # Readable records by table.
    records: Mapping[str, int]
    damage: tuple[Damage, ...]
    # How many of the records came from the generation before, whose copies in this one are damaged.
    recovered: int
    # Of a last line that a writer is still at, or died in the middle of.
    unfinished_bytes: int


def verify(folder: Path) -> Verification:
    """Reads each record of a store whole; the saved index is not asked, and made anew."""
    generation = Generation(folder, layout_of(folder), trust_saved_index=False)
    for row in generation.index.column("alive").nonzero()[0].tolist():
        # What turns out to be unreadable joins the damage.
        with suppress(DamagedResultError):
            generation.record(row)
    generation.save_index()
    return Verification(
        generation.sizes,
        counts(generation),
        tuple(generation.damage),
        generation.recovered,
        generation.unfinished_bytes,
    )
