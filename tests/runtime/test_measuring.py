"""The order of runs around a timed run. The backend only records it."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dlbricks_tui.runtime import protocol
from dlbricks_tui.runtime.inside.backend import Backend, BoundNetwork, ProfiledNetwork, RefusalError, imported
from dlbricks_tui.runtime.inside.measuring import LoadedPrograms
from dlbricks_tui.runtime.inside.mxnet_backend import _Recorder
from dlbricks_tui.runtime.inside.ort_backend import _events_in

ONE = protocol.ArrayType((1,), "float32")


def network(name: str) -> protocol.Network:
    return protocol.Network(name, {"data": ONE}, {})


class Noted(BoundNetwork):
    """A network that records its name whenever it runs."""

    def __init__(self, name: str, runs: list[str]) -> None:
        self.inputs, self.outputs = [name], [name]
        self._name, self._runs = name, runs

    def run(self) -> None:
        self._runs.append(self._name)

    def refuse_infinite_values(self) -> None:
        """Accept all values."""

    def profiled(self) -> ProfiledNetwork:
        raise NotImplementedError


class Noting(Backend):
    nothing, sweep = network("nothing"), network("sweep")

    def __init__(self) -> None:
        self.runs: list[str] = []

    def passing_over(self, size_bytes: int) -> protocol.Network:
        return network(f"pass over {size_bytes}")

    def infer(self, request: protocol.Infer) -> protocol.Inferred:
        raise NotImplementedError(request)

    def fuse(self, request: protocol.Fuse) -> protocol.Fused:
        raise NotImplementedError(request)

    def bind(
        self, network: protocol.Network, fed: Sequence[Any] | None = None, *, side_by_side: bool = False
    ) -> BoundNetwork:
        return Noted(network.symbol, self.runs)


def runs_of(*programs: protocol.Program, warm: int, repeat: int) -> list[str]:
    """Return the names of the networks that run when these programs are sampled together."""
    backend = Noting()
    bench = LoadedPrograms(backend)
    names = tuple(str(number) for number in range(len(programs)))
    for name, program in zip(names, programs, strict=True):
        bench.load(protocol.Load(name, program, check_values=False))
    backend.runs.clear()
    sampled = bench.sample(protocol.Sample(names, warm, repeat))
    assert [len(taken) for taken in sampled.durations_ns] == [repeat] * len(programs)
    return backend.runs


WARM = protocol.Program(network("brick"), prelude=network("prelude"))


def test_programs_and_preludes_run_untimed_and_then_timed() -> None:
    assert runs_of(WARM, warm=2, repeat=1) == ["prelude"] * 3 + ["brick"] * 3


def test_memory_is_swept_before_each_run_of_a_carrier() -> None:
    carrier = protocol.Program(network("carrier"), between_bytes=8)
    assert runs_of(carrier, warm=1, repeat=2) == ["pass over 8", "carrier"] * 3


def test_cold_programs_run_last_after_one_sweep_of_the_caches() -> None:
    cold = replace(WARM, cold=True)
    swept = ["sweep", "prelude", "prelude", "sweep", "brick", "brick"]
    assert runs_of(cold, WARM, cold, warm=1, repeat=1) == ["prelude", "prelude", "brick", "brick", *swept]


class Outgrowing(Noted):
    """A network whose second run finds the outputs of the first one too small."""

    def run(self) -> None:
        super().run()
        self.allocates = len(self._runs) > 1


def test_the_run_that_finds_the_outputs_too_small_is_timed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = Noting()
    bench = LoadedPrograms(backend)
    monkeypatch.setattr(backend, "bind", lambda network, *_, **__: Outgrowing(network.symbol, backend.runs))
    bench.load(protocol.Load("p", protocol.Program(network("n")), check_values=False))
    assert len(bench.sample(protocol.Sample(("p",), 0, 3)).durations_ns[0]) == 3
    assert backend.runs == ["n"] * 5, "one when it was loaded, and the second one twice"


@pytest.mark.parametrize("error", ["ImportError", "RuntimeError", "ValueError"])
def test_a_framework_whose_import_fails_half_way_is_refused_in_one_line(
    error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "half_there.py").write_text(f"raise {error}('numpy\\n\\nhas changed')")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(RefusalError, match=r"^It cannot be imported: numpy has changed$") as refused:
        imported("half_there", "It")
    assert refused.value.refused.reason is protocol.Reason.NO_FRAMEWORK


class FullDisk:
    """A profiler of MXNet that writes as much of its events as the disk holds."""

    def __init__(self, written: str) -> None:
        self._written = written

    def set_config(self, *, filename: str, **_: object) -> None:
        self._path = Path(filename)

    def set_state(self, _: str) -> None: ...

    def dump(self, *, finished: bool) -> None:
        self._path.write_text(self._written)


EVENT = '{"name": "relu", "cat": "operator", "ph": "B", "ts": 1}'


@pytest.mark.parametrize("written", ["", f"{EVENT},\n{EVENT[:20]}"])
def test_a_profile_that_a_full_disk_cut_short_is_refused(written: str, tmp_path: Path) -> None:
    profile = tmp_path / "profile.json"
    profile.write_text(f"[{written}")
    cached: Any = _Recorder
    recorder = cached.__wrapped__(SimpleNamespace(profiler=FullDisk(written)))
    for read in (recorder.stop, lambda: _events_in(profile)):
        with pytest.raises(RefusalError, match="the profile cannot be written to") as refused:
            read()
        assert refused.value.refused.reason is protocol.Reason.NO_ROOM
    assert cached.__wrapped__(SimpleNamespace(profiler=FullDisk(f"{EVENT}\n"))).stop()
