"""A process that writes to a store and prints acknowledgements; tests start it, and some kill it.

`python -m tests.store.writer FOLDER add COUNT` adds results one by one; `... FOLDER churn` adds, deletes and compacts
until it is killed, sometimes on a full disk. Every line on standard output is an acknowledgement: `+uuid` or `-uuid`.
`... FOLDER read` reads until it is killed.
"""

import os
import random
import resource
import sys
from pathlib import Path

from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.documents import StoreError
from tests.store.samples import brick, measurement


def _acknowledge(*lines: str) -> None:
    # One write, so that a kill leaves either all of it or nothing.
    os.write(1, "".join(f"{line}\n" for line in lines).encode())


def _add(store: ResultsDatabase, count: int) -> None:
    for number in range(count):
        record = measurement(brick=brick(number % 7))
        store.add(record)
        _acknowledge(f"+{record.uuid}")


def _churn(store: ResultsDatabase) -> None:
    chance = random.Random()
    mine: list[str] = []
    while True:
        batch = [measurement(brick=brick(number)) for number in range(chance.randrange(1, 40))]
        if chance.random() < 0.1:
            _try_on_a_full_disk(store, chance)
        store.add(*batch)
        mine += [record.uuid for record in batch]
        _acknowledge(*(f"+{record.uuid}" for record in batch))
        if chance.random() < 0.3:
            gone = mine.pop(chance.randrange(len(mine)))
            # Printed before and after: a change without an acknowledgement may have happened or not.
            _acknowledge(f"?{gone}")
            store.delete([gone])
            _acknowledge(f"-{gone}")
        if chance.random() < 0.2:
            store.compact()


def _try_on_a_full_disk(store: ResultsDatabase, chance: random.Random) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    sizes = store.generation.sizes.values()
    resource.setrlimit(resource.RLIMIT_FSIZE, (max(sizes, default=0) + chance.randrange(2000), most))
    refused = [measurement(brick=brick(number)) for number in range(20)]
    try:
        store.add(*refused)
        _acknowledge(*(f"+{record.uuid}" for record in refused))
    except StoreError:
        # Nothing was stored.
        pass
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


def _read(store: ResultsDatabase) -> None:
    chance, table = random.Random(), store.table("measurements")
    while True:
        store.refresh()
        found = store.select(f"brick={brick(chance.randrange(40))}")
        if found:
            place = chance.randrange(len(found))
            assert found.result(place).uuid == found[place].id
        count = len(table)
        assert count == len(table.all()) or store.refresh() or count != len(table)


def main(folder: str, task: str, count: str = "0") -> None:
    """Execute the task."""
    with ResultsDatabase(Path(folder)) as store:
        _acknowledge("ready")
        if task == "add":
            _add(store, int(count))
        elif task == "read":
            _read(store)
        else:
            _churn(store)


if __name__ == "__main__":
    main(*sys.argv[1:])
