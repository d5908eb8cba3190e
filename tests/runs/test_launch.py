import os
import pty
import re
import shlex
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.jobs.folder import State
from dlbricks_tui.runs.control import create_run
from dlbricks_tui.share.suites.running import start_detached
from dlbricks_tui.store.entries import head_of, line_of
from dlbricks_tui.store.errors import OtherVersionError
from dlbricks_tui.store.files import journal_name
from dlbricks_tui.store.middlewares import with_checksum, with_schema
from tests.runs.killing import eventually
from tests.runs.runs import BRICKS, FAKE, FAKE_WORKER, Site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A site whose interpreter starts the fake worker whatever it is told to start."""
    interpreter = tmp_path / "python"
    interpreter.write_text(f'#!/bin/sh\nshift\nexec {shlex.quote(sys.executable)} {FAKE_WORKER} "$@"\n')
    interpreter.chmod(0o755)
    return Site(tmp_path / "data")


def test_a_detached_run_goes_on_when_its_terminal_is_closed(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in site.slow().environment.items():
        monkeypatch.setenv(name, value)
    fake = replace(FAKE, python=str(site.path.with_name("python")))
    folder = create_run(site.request(runtime=fake), site.data)
    child, terminal = pty.fork()
    if not child:
        # A process of a terminal of its own, which starts the run and stays.
        start_detached(folder, site.data)
        signal.pause()
        os._exit(0)
    eventually(lambda: folder.state().state is State.RUNNING)
    assert os.getsid(folder.state().process.pid) == folder.state().process.pid
    os.close(terminal)
    os.waitpid(child, 0)
    site.hurry()
    eventually(lambda: folder.state().state is State.FINISHED)
    assert folder.state().bricks.measured == BRICKS


def test_a_run_that_cannot_start_is_reported_with_the_reason(site: Site) -> None:
    folder = create_run(site.request(), site.data)
    folder.request_file.write_text("{}")
    with pytest.raises(JobError, match=rf"did not start: {re.escape(str(folder.request_file))} is no request"):
        start_detached(folder, site.data)


OLDER, NEWER = b'{"table":"dlbricks","format":"dlbricks 0.1"}', with_schema(line_of(head_of()), 999)


@pytest.mark.parametrize("head", [OLDER, NEWER], ids=["older", "newer"])
def test_a_store_of_another_version_is_refused_before_there_is_a_run(site: Site, head: bytes) -> None:
    journal = site.data.store / journal_name(0)
    journal.parent.mkdir(parents=True)
    journal.write_bytes(with_checksum(head) + b"\n")
    with pytest.raises(OtherVersionError):
        create_run(site.request(), site.data)
    assert not site.data.runs.exists()
