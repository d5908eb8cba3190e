"""The attack: clocks that were ahead, and every kind of file of the data folder damaged.

`make test` damages each file in every third way, neighbours in other ones, and runs the first command that reads it.
`make soak` does all of it and more, and prints the counts.
"""

import random
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.selections import LEAST_FIRST
from dlbricks_tui.store.verification import verify
from tests.attack.damage import MORE_WAYS, WAYS
from tests.attack.damaged_files import attack_files
from tests.attack.prepared import TARGETS, prepared_folder
from tests.soak import TOLD
from tests.store.samples import form, measurement, runtime, system

_CLOCKS = 300


def test_no_damage_to_any_file_of_the_data_folder_is_a_fault_or_hangs(tmp_path: Path) -> None:
    with prepared_folder(tmp_path / "work") as data:
        tallies = [
            attack_files(data, [target], dict(list(WAYS.items())[number % 3 :: 3]), commands=1)
            for number, target in enumerate(TARGETS)
        ]
    assert [fault for tally in tallies for fault in tally.faults] == []
    assert [tally.files for tally in tallies] == [1] * len(TARGETS)
    assert sum(tally.damages for tally in tallies) >= len(TARGETS) * len(WAYS) // 3


def attack_clocks(folder: Path, chance: random.Random) -> int:
    """Store results under a clock that is ahead at times; the order in which they were stored has to count."""
    now = datetime.now(timezone.utc)
    results = [
        measurement(when=(now - timedelta(hours=100 - hour)).isoformat()) for hour in range(chance.randrange(1, 9))
    ]
    for place in range(len(results)):
        if chance.random() < 0.4:
            results[place] = measurement(when=(now + timedelta(days=chance.uniform(0.1, 30_000))).isoformat())
    results.append(measurement(when=now.isoformat()))
    with ResultsDatabase(folder) as store:
        store.add(form(), system(), runtime())
        for result in results:
            store.add(result)
            if chance.random() < 0.1:
                store.compact()
        stored = [it.uuid for it in results]
        assert store.select(order=LEAST_FIRST).values("id") == stored
        store.correct_dates()
        assert store.select(order=LEAST_FIRST).values("id") == stored
    assert not verify(folder).implausible
    return len(results)


def test_the_last_result_counts_after_any_clock(tmp_path: Path) -> None:
    for seed in range(5):
        attack_clocks(tmp_path / str(seed), random.Random(seed))


@pytest.mark.soak
def test_the_whole_attack(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    with prepared_folder(tmp_path / "work") as data:
        tally = attack_files(data, TARGETS, MORE_WAYS)
    dated = sum(attack_clocks(tmp_path / "clocks" / str(seed), random.Random(seed)) for seed in range(_CLOCKS))
    record_property(TOLD, str(tally))
    record_property(TOLD, f"{_CLOCKS} stores under clocks that were ahead at times: {dated} results, all in order")
    assert tally.faults == []
