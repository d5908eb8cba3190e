import json
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from dlbricks_tui.host import peak_program
from dlbricks_tui.host.fingerprint import DataCache, caches
from dlbricks_tui.host.peak_program import _copying, _multiplying, _reading, _together, _Window
from dlbricks_tui.host.peaks import MEMORY, SHARED_CACHE, PeaksError, measure_peaks, quick_peaks
from tests.host.hosts import CPU, c5_large

CACHE = f"{CPU}/cpu0/cache"
SHOWN = ("1 Data 32K 0", "1 Instruction 64K 0", "2 Unified 1024K 0,2", "3 Unified 16384K 0-3")
CACHES = {
    f"{CACHE}/index{index}/{name}": value
    for index, shown in enumerate(SHOWN)
    for name, value in zip(("level", "type", "size", "shared_cpu_list"), shown.split(), strict=True)
}


class Program:
    """Stands for the measuring program: twice as much arithmetic with the widest instructions."""

    def __init__(self) -> None:
        self.calls: list[tuple[list[str], Mapping[str, str]]] = []

    def __call__(self, arguments: list[str], variables: Mapping[str, str]) -> str:
        self.calls.append((arguments, variables))
        flops = 5e10 if "OPENBLAS_CORETYPE" in variables else 1e11
        return json.dumps({"flops": flops, "bandwidth": [1e10 * (each + 1) for each in range(len(arguments) - 2)]})


def test_caches_are_read_from_the_kernel_without_those_for_instructions(tmp_path: Path) -> None:
    found = caches(c5_large(tmp_path, CACHES))
    assert found == (DataCache(1, 32 << 10, 1), DataCache(2, 1 << 20, 2), DataCache(3, 16 << 20, 4))


def test_peaks_are_measured_for_each_instruction_set_and_level_of_memory(tmp_path: Path) -> None:
    program = Program()
    found = measure_peaks("c5.large", 2, c5_large(tmp_path, CACHES), program)
    assert (found.system, found.threads) == ("c5.large", 2)
    assert found.arithmetic == (("avx512", 100.0), ("avx2", 50.0))
    assert found.bandwidth == ((MEMORY, 10.0), (SHARED_CACHE, 20.0))
    threads, _, memory, shared = program.calls[0][0]
    assert threads == "2"
    # Far more than the shared cache holds, and a part of it that the private caches do not hold.
    assert 2 * int(memory) >= 4 * (16 << 20)
    assert 1 << 20 < int(shared) <= 8 << 20
    # BLAS itself has one thread: the program has the others.
    assert all(variables["OPENBLAS_NUM_THREADS"] == "1" for _, variables in program.calls)


def test_arrays_in_memory_exceed_all_shared_caches_of_a_host_that_has_several(tmp_path: Path) -> None:
    program = Program()
    several = {f"{CPU}/cpu{it}/cache/index3/shared_cpu_list": f"{it}-{it + 3}" for it in range(0, 48, 4)}
    for threads in (48, 12):
        measure_peaks("epyc", threads, c5_large(tmp_path / f"{threads}", {**CACHES, **several}), program)
        assert threads * int(program.calls[-2][0][2]) >= 4 * 12 * (16 << 20)
        quick_peaks("epyc", threads, c5_large(tmp_path / f"quick {threads}", {**CACHES, **several}), program)
        assert threads * int(program.calls[-1][0][2]) >= 4 * 12 * (16 << 20)


def test_a_host_that_hides_its_caches_has_no_peak_of_a_shared_cache(tmp_path: Path) -> None:
    found = measure_peaks("c5.large", 1, c5_large(tmp_path), Program())
    assert [level for level, _ in found.bandwidth] == [MEMORY]


def in_this_process(arguments: list[str], _: Mapping[str, str]) -> str:
    with redirect_stdout(StringIO()) as printed:
        peak_program.main(int(arguments[0]), 0.02, *(min(1 << 20, int(size)) for size in arguments[2:]))
    return printed.getvalue()


@pytest.mark.parametrize("program", [in_this_process, pytest.param(None, marks=pytest.mark.soak)])
def test_this_host_reaches_some_arithmetic_and_bandwidth(
    program: Callable[[list[str], Mapping[str, str]], str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peak_program, "_TRIES", 5)
    monkeypatch.setattr(peak_program, "_PRODUCTS", ((2, 16, 8, 4),))
    found = measure_peaks("here", 2, run=program)
    assert found.arithmetic
    assert all(value > 0 for _, value in (*found.arithmetic, *found.bandwidth))
    assert dict(found.bandwidth).keys() >= {MEMORY}


def test_the_work_of_a_step_is_counted_in_operations_and_bytes() -> None:
    assert _multiplying(2, 16, 8, 4)()() == 2 * 2 * 16 * 8 * 4
    # Two arrays of half the size each are moved, large ones in parts.
    assert [work(1 << 20)()() for work in (_reading, _copying)] == [1 << 20] * 2
    assert _reading(10 << 20)()() == 5 << 20


def test_a_program_that_fails_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dlbricks_tui.host.peaks._PROGRAM", Path("/nowhere/program.py"))
    with pytest.raises(PeaksError, match=r"cannot be measured: .*nowhere") as refused:
        measure_peaks("here", 1)
    assert "\n" not in str(refused.value)


def test_threads_that_begin_late_do_not_make_the_others_faster() -> None:
    early, late = _Window(began=0.0, ended=1.0, amount=10.0), _Window(began=0.9, ended=2.0, amount=10.0)
    assert _together([early, late]) == 10.0


def test_a_first_impression_reads_memory_and_multiplies_with_one_kind_of_work_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = Program()
    found = quick_peaks("c5.large", 2, c5_large(tmp_path, CACHES), program)
    assert found.arithmetic == (("any", 100.0),)
    assert found.bandwidth == ((MEMORY, 10.0),)
    ((threads, seconds, memory), _) = program.calls[0]
    assert (threads, int(memory)) == ("2", 64 << 20)
    works: list[object] = []

    def speed(threads: int, seconds: float, work: object) -> float:
        works.append(work)
        return 1.0

    monkeypatch.setattr(peak_program, "_speed", speed)
    with redirect_stdout(StringIO()):
        peak_program.main(2, float(seconds), 1 << 20)
    assert len(works) == 2
