"""Acknowledged records stay, even if writers are killed or write at the same time."""

import os
import random
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, cast

import pytest

from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.selections import OLDEST_FIRST
from dlbricks_tui.store.verification import verify
from tests.soak import TOLD
from tests.store.processes import Acknowledged, keep_killing, start_writer


def test_kills_at_random_moments_lose_no_acknowledged_result(tmp_path: Path) -> None:
    keep_killing(tmp_path, 3)


@pytest.mark.soak
def test_two_hundred_kills_lose_no_acknowledged_result(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    acknowledged = keep_killing(tmp_path, 200)
    record_property(TOLD, f"200 kills of writers, some on a full disk: {acknowledged} results acknowledged, none lost")


def write_at_once(folder: Path, each: int) -> None:
    writers: list[subprocess.Popen[bytes]] = [start_writer(folder, "add", str(each)) for _ in range(2)]
    acknowledged = {line for writer in writers for line in writer.communicate()[0].decode().split() if line[0] == "+"}
    assert [writer.returncode for writer in writers] == [0, 0]
    with ResultsDatabase(folder) as store:
        stored = {f"+{uuid}" for uuid in store.select(order=OLDEST_FIRST).values("id")}
    assert stored == acknowledged
    assert len(stored) == 2 * each
    assert not verify(folder).damage


def test_two_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    write_at_once(tmp_path, 100)


@pytest.mark.soak
def test_two_writers_with_five_thousand_each_make_ten_thousand(tmp_path: Path) -> None:
    write_at_once(tmp_path, 5000)


@pytest.mark.soak
def test_kills_full_disks_and_compactions_lose_nothing_acknowledged(tmp_path: Path) -> None:
    """`SOAK_SECONDS` sets another length, such as an hour."""
    end = time.monotonic() + float(os.environ.get("SOAK_SECONDS", "300"))
    chance, acknowledged = random.Random(47), Acknowledged()
    readers = [start_writer(tmp_path, "read") for _ in range(3)]
    while time.monotonic() < end:
        writers = [start_writer(tmp_path, "churn") for _ in range(2)]
        heads = [cast(IO[bytes], writer.stdout).readline() for writer in writers]
        for writer, head in zip(writers, heads, strict=True):
            time.sleep(chance.uniform(0, 1))
            writer.kill()
            acknowledged.take(head + writer.communicate()[0])
        acknowledged.check(tmp_path)
        # So that an hour does not fill the disk.
        if len(acknowledged.there) > 20_000:
            with ResultsDatabase(tmp_path) as store:
                store.delete(acknowledged.there)
            acknowledged.there.clear()
    assert [reader.poll() for reader in readers] == [None] * 3
    for reader in readers:
        reader.kill()
        reader.communicate()
    # A writer that was killed may have announced a deletion and not made it.
    assert verify(tmp_path).records["measurements"] == len(acknowledged.there | acknowledged.perhaps_deleted)
