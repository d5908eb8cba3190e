"""The attack: clocks that were ahead, and every kind of file of the data folder damaged.

`make test` damages each file in every fifth way, neighbours in other ones, and runs the first command that reads it.
`make soak` does all of it and more, and prints the counts.
"""

import json
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from dlbricks_tui.cli.main import main
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.jobs.folder import RunFolders
from dlbricks_tui.measure.jobs import JobKey
from dlbricks_tui.measure.known import known_in
from dlbricks_tui.measure.results import conditions_of
from dlbricks_tui.store import index
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.documents import TABLES
from dlbricks_tui.store.records import Measurement, Run
from dlbricks_tui.store.selections import LEAST_FIRST, NEWEST_FIRST, OLDEST_FIRST
from dlbricks_tui.store.verification import verify
from tests.attack.damage import MORE_WAYS, WAYS, Ways, remove
from tests.attack.prepared import TARGETS, Outcome, Target, prepared_folder, run_command
from tests.runs.runs import BRICKS, FAKE, Site
from tests.soak import TOLD
from tests.store.samples import form, measurement, runtime, system


@dataclass
class Tally:
    """The counts of an attack, and a line for each fault."""

    files: int = 0
    damages: int = 0
    commands: int = 0
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.files} files of the data folder, damaged {self.damages} times: {self.commands} commands, "
            f"{len(self.faults)} faults"
        )


def attack_file(data: DataFolder, target: Target, ways: Ways, tally: Tally) -> None:
    """Damage a target in these ways, and run its commands on it."""
    found = sorted(data.path.glob(target.files))
    if not found:
        tally.faults.append(f"{target.files}: the prepared folder has no such file")
        return
    path = found[0]
    tally.files += 1
    if target.without:
        shutil.rmtree(data.path / target.without)
    content = path.read_bytes()
    sound = {words: run_command(data, words) for words in target.commands}
    tally.faults += [f"{words}, undamaged: {it.fault}" for words, it in sound.items() if it.fault]
    for way, damage in ways.items():
        path.write_bytes(content)
        damage(path)
        tally.damages += 1
        damaged, reads = _state_of(path), _has_form_of(path, content)
        for words, expected in sound.items():
            if target.without:
                shutil.rmtree(data.path / target.without, ignore_errors=True)
            tally.commands += 1
            outcome = run_command(data, words)
            fault = outcome.fault or ("" if reads else _difference(target, path, outcome, expected))
            if fault:
                tally.faults.append(f"{path.relative_to(data.path)} with {way}, `{words}`: {fault}")
        if not (target.is_cache or target.is_written or reads) and _state_of(path) != damaged:
            tally.faults.append(f"{path.relative_to(data.path)} with {way}: a command has changed the damaged file")
        remove(path)
    path.write_bytes(content)


def _has_form_of(path: Path, content: bytes) -> bool:
    """Return whether a damaged file is a JSON document like the sound one, with another text or number in it.

    No reader can tell such damage from a change, so that commands may say and write what follows from it.
    """
    with suppress(OSError, ValueError, RecursionError):
        return path.is_file() and _form(json.loads(path.read_bytes())) == _form(json.loads(content))
    return False


def _form(document: object) -> object:
    if isinstance(document, dict):
        return {key: _form(value) for key, value in document.items()}
    return [_form(it) for it in document] if isinstance(document, list) else type(document)


def _difference(target: Target, path: Path, outcome: Outcome, sound: Outcome) -> str:
    """Return the fault of an outcome on a damaged file, beside that on the sound one."""
    if (outcome.status, outcome.out) == (sound.status, sound.out):
        return "" if outcome.told == sound.told or not target.is_cache else f"it tells of a cache: {outcome.told}"
    if target.is_cache:
        return f"its output changes with a cache: status {outcome.status}, {outcome.told.strip()[:300]}"
    named = (path.name, path.parent.name)
    if not target.forgives and not target.is_written and not any(it in outcome.told + outcome.out for it in named):
        return f"it does not name the file: status {outcome.status}, {outcome.told.strip()[:300]}"
    return ""


def _state_of(path: Path) -> tuple[int, bytes]:
    """Return the kind and the content of a file."""
    mode = path.lstat().st_mode
    return mode, path.read_bytes() if path.is_file() else b""


def test_no_damage_to_any_file_of_the_data_folder_is_a_fault_or_hangs(tmp_path: Path) -> None:
    tally = Tally()
    with prepared_folder(tmp_path / "work") as data:
        for number, target in enumerate(TARGETS):
            first = replace(target, commands=target.commands[:1])
            attack_file(data, first, dict(list(WAYS.items())[number % 5 :: 5]), tally)
    assert tally.faults == []
    assert tally.files == len(TARGETS)
    assert tally.damages >= len(TARGETS) * len(WAYS) // 5


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


_CLOCKS = 300


@pytest.mark.soak
def test_the_whole_attack(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    tally = Tally()
    with prepared_folder(tmp_path / "work") as data:
        for target in TARGETS:
            attack_file(data, target, MORE_WAYS, tally)
    dated = sum(attack_clocks(tmp_path / "clocks" / str(seed), random.Random(seed)) for seed in range(_CLOCKS))
    record_property(TOLD, str(tally))
    record_property(TOLD, f"{_CLOCKS} stores under clocks that were ahead at times: {dated} results, all in order")
    assert tally.faults == []


AHEAD = "2099-03-01T00:00:00.000000+00:00"
DATED = [name for name in TABLES if name not in ("bricks", "systems", "runtimes", "imports")]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A site with a run and results that are dated as a clock would have done that was ahead."""
    site = Site(tmp_path / "data")
    for name, value in site.environment.items():
        monkeypatch.setenv(name, value)
    site.run(site.request())
    with ResultsDatabase(site.data.store) as store:
        for name in DATED:
            store.table(name).update({"when": AHEAD, **({"started": AHEAD} if name == "runs" else {})})
    for state in RunFolders(site.data.runs).states():
        RunFolders(site.data.runs).find(state.run).set_state(replace(state, started=AHEAD))
    return site


def test_after_a_clock_that_was_ahead_a_run_goes_on_and_new_results_count_and_dates_can_be_corrected(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    with ResultsDatabase(site.data.store) as store:
        (run,) = store.select().distinct("run")
        found = store.select(order=OLDEST_FIRST)
        conditions = conditions_of(found[0].system, FAKE, site.request().method)
        keys = [JobKey(it.brick, it.context, "") for it in found]
        # A resumed run goes on from its own results.
        assert known_in(store, conditions, keys, run=run).measured.keys() == set(keys)
        assert known_in(store, conditions, keys, run="another").measured == {}
    # Measuring again measures everything.
    state = site.run(replace(site.request(), again=True))
    assert (state.bricks.measured, state.bricks.reused) == (BRICKS, 0)
    assert RunFolders(site.data.runs).find("last").run == state.run
    with ResultsDatabase(site.data.store) as store:
        assert {*{(it.brick, it.context): it.run for it in store.select(order=LEAST_FIRST)}.values()} == {state.run}
        assert {it.run for it in store.select(order=NEWEST_FIRST)[:BRICKS]} == {state.run}
        assert store.runs()[-1].id == store.least_first(Run)[-1].id == state.run
        assert all(datetime.fromisoformat(it.when) < datetime.now(timezone.utc) for it in store.records(Measurement))
        before = store.select(order=LEAST_FIRST).values("id")
        ahead = len(store.from_the_future)

    def say(*words: str) -> tuple[int, str]:
        status = main(["--data-dir", str(site.path), *words])
        return status, capsys.readouterr().err

    # Dates in the future are told, and can be corrected.
    capsys.readouterr()
    _, told = say("results", "list")
    assert f"{ahead} records of the store have a date in the future, up to 2099-03-01" in told
    status, told = say("results", "verify")
    cure = f"`dlbricks --data-dir {site.path} results verify --correct-dates` corrects dates"
    assert (status, cure in told) == (1, True)
    assert "results delete" not in told
    assert say("results", "verify", "--correct-dates") == (0, f"{ahead} dates corrected\n")
    assert say("results", "verify") == (0, "")
    with ResultsDatabase(site.data.store) as store:
        # Nothing is lost, and the same results count.
        assert store.select(order=LEAST_FIRST).values("id") == before
        assert store.runs()[-1].id == state.run
    assert not verify(site.data.store).implausible


def test_a_clock_that_is_behind_leaves_the_order_of_what_was_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Behind(datetime):
        @classmethod
        def now(cls, tz: object = None) -> "Behind":
            return cls(2026, 11, 2, tzinfo=timezone.utc)

    with ResultsDatabase(tmp_path) as store:
        for day in ("2026-11-01", "2099-01-01", "2026-11-03", "2098-01-01", "2026-11-05"):
            store.add(measurement(when=f"{day}T00:00:00+00:00"))
        monkeypatch.setattr(index, "datetime", Behind)
        store.add(measurement(when="2026-11-02T00:00:00+00:00", uuid="0" * 32))
        assert store.select(order=LEAST_FIRST)[-1].id == "0" * 32
