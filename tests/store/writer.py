"""A process that writes to a store and prints acknowledgements; tests start it, and some kill it.

`python -m tests.store.writer FOLDER add COUNT` adds results one by one; `... FOLDER churn` adds, deletes and compacts
until it is killed. Every line on standard output is an acknowledgement: `+uuid` or `-uuid`.
"""

import os
import random
import sys
from pathlib import Path

from dlbricks_tui.store.store import Store
from tests.store.samples import brick, measurement


def _acknowledge(*lines: str) -> None:
    # One write, so that a kill leaves either all of it or nothing.
    os.write(1, "".join(f"{line}\n" for line in lines).encode())


def _add(store: Store, count: int) -> None:
    for number in range(count):
        record = measurement(brick=brick(number % 7))
        store.add(record)
        _acknowledge(f"+{record.uuid}")


def _churn(store: Store) -> None:
    chance = random.Random()
    mine: list[str] = []
    while True:
        batch = [measurement(brick=brick(number)) for number in range(chance.randrange(1, 40))]
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


def main(folder: str, task: str, count: str = "0") -> None:
    """Execute the task."""
    with Store(Path(folder)) as store:
        _acknowledge("ready")
        if task == "add":
            _add(store, int(count))
        else:
            _churn(store)


if __name__ == "__main__":
    main(*sys.argv[1:])
