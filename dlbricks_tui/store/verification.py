"""Read everything that a store holds and check it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from dlbricks_tui.store.documents import BrokenDocumentError, to_document
from dlbricks_tui.store.errors import DamagedResultError
from dlbricks_tui.store.files import Damage
from dlbricks_tui.store.folder import layout_of
from dlbricks_tui.store.generation import Generation
from dlbricks_tui.store.plausibility import References, check_plausible
from dlbricks_tui.store.queries import counts


@dataclass(frozen=True, slots=True)
class Implausible:
    """A stored record that no measurement gives."""

    table: str
    uuid: str
    reason: str

    def __str__(self) -> str:
        return f"{self.table.replace('_', ' ')}: {self.uuid} {self.reason}"


@dataclass(frozen=True, slots=True)
class Verification:
    """What the store's files hold, and what of it cannot be read."""

    # Bytes by name.
    files: Mapping[str, int]
    # Readable records by table.
    records: Mapping[str, int]
    damage: tuple[Damage, ...]
    # Records that can be read and cannot be true.
    implausible: tuple[Implausible, ...]
    # How many of the records came from the generation before, whose copies in this one are damaged.
    recovered: int
    # Of a last line that a writer is still at, or died in the middle of.
    unfinished_bytes: int


def verify(folder: Path) -> Verification:
    """Read each record of a store whole, without the saved index, which is made anew."""
    generation = Generation(folder, layout_of(folder), trust_saved_index=False)
    implausible = tuple(_implausible(generation))
    generation.save_index()
    return Verification(
        generation.sizes,
        counts(generation),
        tuple(generation.damage),
        implausible,
        generation.recovered,
        generation.unfinished_bytes,
    )


def _implausible(generation: Generation) -> Iterator[Implausible]:
    references = References.of(generation)
    for row in generation.index.column("alive").nonzero()[0].tolist():
        try:
            record = generation.record(row)
            check_plausible(record)
            references.check(record)
        except DamagedResultError:
            # It has joined the damage of the generation.
            continue
        except BrokenDocumentError as error:
            document = to_document(record)
            yield Implausible(document["table"], document["uuid"], str(error))
