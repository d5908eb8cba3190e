"""Acknowledged records stay, even if writers are killed or write at the same time."""

import random
import subprocess
import time
from pathlib import Path

import pytest

from dlbricks_tui.store.queries import select
from dlbricks_tui.store.store import Store
from dlbricks_tui.store.verification import verify
from tests.store.processes import start_writer


def kill_at_a_random_moment(folder: Path, chance: random.Random) -> bytes:
    with start_writer(folder, "churn") as writer:
        assert writer.stdout is not None
        acknowledged = writer.stdout.readline()
        time.sleep(chance.uniform(0, 0.1))
        writer.kill()
        return acknowledged + writer.stdout.read()


def keep_killing(folder: Path, times: int) -> None:
    chance = random.Random(times)
    there: set[str] = set()
    perhaps: set[str] = set()
    for _ in range(times):
        for line in kill_at_a_random_moment(folder, chance).decode().splitlines():
            if line.startswith("+"):
                there.add(line[1:])
            elif line.startswith("?"):
                there.remove(line[1:])
                perhaps.add(line[1:])
            elif line.startswith("-"):
                perhaps.remove(line[1:])
        with Store(folder) as store:
            stored = set(select(store.generation).values("id"))
            # Of the batch that was being written some may be there, unacknowledged: they are now.
            assert there <= stored
            there |= stored - perhaps
            perhaps &= stored
        assert there <= stored <= there | perhaps
    found = verify(folder)
    assert found.records["measurements"] == len(stored)
    # A line that was torn is named, and it is all that is ever lost.
    assert all("checksum" in each.reason or "as dlbricks writes it" in each.reason for each in found.damage)


def test_twenty_kills_lose_no_acknowledged_result(tmp_path: Path) -> None:
    keep_killing(tmp_path, 20)


@pytest.mark.soak
def test_two_hundred_kills_lose_no_acknowledged_result(tmp_path: Path) -> None:
    keep_killing(tmp_path, 200)


def write_at_once(folder: Path, each: int) -> None:
    writers: list[subprocess.Popen[bytes]] = [start_writer(folder, "add", str(each)) for _ in range(2)]
    acknowledged = {line for writer in writers for line in writer.communicate()[0].decode().split() if line[0] == "+"}
    assert [writer.returncode for writer in writers] == [0, 0]
    with Store(folder) as store:
        stored = {f"+{uuid}" for uuid in select(store.generation).values("id")}
    assert stored == acknowledged
    assert len(stored) == 2 * each
    assert not verify(folder).damage


def test_two_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    write_at_once(tmp_path, 500)


@pytest.mark.soak
def test_two_writers_with_five_thousand_each_make_ten_thousand(tmp_path: Path) -> None:
    write_at_once(tmp_path, 5000)
