"""What dask calls on a host."""

import asyncio
import os
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("distributed")

from dlbricks_tui.fleet.engine import on_worker
from dlbricks_tui.fleet.errors import HostError


def test_variables_that_dask_sets_for_its_workers_do_not_reach_measuring_processes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import dask.config
    import distributed  # noqa: F401

    presets = dask.config.get("distributed.nanny.pre-spawn-environ")
    assert "OMP_NUM_THREADS" in presets
    for name, value in presets.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setenv("OMP_PROC_BIND", "true")
    monkeypatch.setattr(on_worker, "_at_host", lambda: SimpleNamespace(report=lambda _: "{}"))
    assert on_worker.call("report") == "answer {}"
    assert not presets.keys() & os.environ.keys()
    # The user's own are kept.
    assert os.environ["OMP_PROC_BIND"] == "true"
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    on_worker.call("report")
    assert os.environ["OMP_NUM_THREADS"] == "4"


@pytest.mark.parametrize("text", [b"answer {}", None, "", "{}", "answers {}", "answer " + 100 * "x"])
def test_an_answer_in_another_form_is_refused(text: object) -> None:
    with pytest.raises(HostError, match="the host answered with something else"):
        on_worker.answer_in(text, 50)


def test_an_answer_is_told_from_an_error() -> None:
    assert on_worker.answer_in('answer {"a": 1}', 50) == '{"a": 1}'
    with pytest.raises(HostError, match="no space left"):
        on_worker.answer_in("error no space left", 50)


class Callback:
    """A periodic callback that notes if it runs."""

    def __init__(self) -> None:
        self.running = True
        self.callback_time = 20.0

    def is_running(self) -> bool:
        return self.running

    def start(self) -> None:
        self.running = True

    def stop(self) -> None:
        self.running = False


def worker_of(callbacks: dict[str, Any]) -> Any:
    """Return a worker with some callbacks."""
    return SimpleNamespace(periodic_callbacks=callbacks, status=SimpleNamespace(name="running"))


def test_a_worker_wakes_rarely_and_its_heartbeats_end_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_worker, "HEARTBEAT_SECONDS", 0.1)
    callbacks = {name: Callback() for name in ("tick", "ticks", "monitor", "heartbeat", "keep-alive")}
    callbacks["keep-alive"].callback_time = 60_000
    beats: list[str] = []

    async def live() -> None:
        worker = worker_of(callbacks)

        async def heartbeat() -> None:
            beats.append(worker.status.name)
            worker.status.name = "closed"

        worker.heartbeat = heartbeat
        # Every driver asks for it.
        for _ in range(2):
            on_worker.calm(worker)
        await asyncio.sleep(0.35)

    asyncio.run(live())
    assert beats == ["running"]
    assert [name for name, it in callbacks.items() if not it.running] == ["tick", "ticks", "heartbeat"]
    assert (callbacks["monitor"].callback_time, callbacks["keep-alive"].callback_time) == (100, 60_000)
