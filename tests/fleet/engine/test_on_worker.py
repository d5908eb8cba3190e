"""What dask calls on a host."""

import asyncio
import os
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("distributed")

from dlbricks_tui.fleet.engine import on_worker, quiet_worker


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
    assert on_worker.report() == "answer {}"
    assert not presets.keys() & os.environ.keys()
    # The user's own are kept.
    assert os.environ["OMP_PROC_BIND"] == "true"
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    on_worker.report()
    assert os.environ["OMP_NUM_THREADS"] == "4"


@pytest.mark.parametrize("text", [b"answer {}", None, "", "{}", "answers {}", "answer " + 100 * "x"])
def test_an_answer_in_another_form_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="the host answered with something else"):
        on_worker.parted(text, 50)


def test_an_answer_is_told_from_an_error() -> None:
    assert on_worker.parted('answer {"a": 1}', 50) == ('{"a": 1}', "")
    assert on_worker.parted("error no space left", 50) == ("", "no space left")


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
    """Return a worker whose loop calls at once."""
    beat = SimpleNamespace(count=0)
    loop = SimpleNamespace(add_callback=lambda function: function())
    return SimpleNamespace(
        loop=loop, periodic_callbacks=callbacks, heartbeat=lambda: beat, status=SimpleNamespace(name="running")
    )


def test_a_worker_wakes_for_rare_heartbeats_only_while_it_measures() -> None:
    async def rest() -> None:
        names = ("tick", "ticks", "monitor", "profile", "memory_monitor", "heartbeat", "keep-alive")
        callbacks = {name: Callback() for name in names}
        callbacks["profile"].stop()
        with quiet_worker.quiet(worker_of(callbacks)):
            assert [name for name, it in callbacks.items() if it.running] == ["keep-alive"]
        assert [name for name, it in callbacks.items() if not it.running] == ["profile"]

    asyncio.run(rest())


def test_the_process_that_watches_a_worker_looks_rarely() -> None:
    callbacks = {name: Callback() for name in ("tick", "monitor")}
    on_worker.calm(worker_of(callbacks))
    assert not callbacks["tick"].running
    assert callbacks["monitor"].callback_time == 10_000


def test_heartbeats_end_with_their_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quiet_worker, "HEARTBEAT_SECONDS", 0.001)
    beats: list[str] = []

    async def live() -> None:
        worker = worker_of({"heartbeat": Callback()})

        async def heartbeat() -> None:
            beats.append(worker.status.name)
            worker.status.name = "closed"

        worker.heartbeat = heartbeat
        quiet_worker.rare_heartbeats(worker)
        while not beats:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.05)

    asyncio.run(live())
    assert beats == ["running"]
