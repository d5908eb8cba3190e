"""Language models in llama.cpp: from small models, whose times a fake llama-bench chooses, to exact answers."""

import errno
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.api import language_answers, language_measuring
from dlbricks_tui.api import language_models as asking
from dlbricks_tui.api.doctor import added_runtime, forget_runtime, runtimes_of
from dlbricks_tui.api.fleets import FleetOptions, fleet_request
from dlbricks_tui.api.language_answers import LanguageAnswer, LanguageOptions
from dlbricks_tui.api.language_models import language_on_systems, variants_of
from dlbricks_tui.api.measuring import MeasureOptions
from dlbricks_tui.documents.language import basis_sentence
from dlbricks_tui.fleet.request import FleetError
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.host.peaks import MEMORY
from dlbricks_tui.language import end_to_end, llama_cpp, llama_rounds
from dlbricks_tui.language.architecture import Architecture, LanguageError, WeightPrecision
from dlbricks_tui.language.config_file import GgufHeader, architecture_of_gguf
from dlbricks_tui.language.decoder import ModelPart, Step
from dlbricks_tui.language.gguf_files import (
    GgufTensor,
    as_llama_cpp_reads,
    gguf_tensors,
    rich_blocks,
    size_bytes,
    write_gguf,
)
from dlbricks_tui.language.llama_cpp import PROTOCOL, small_models
from dlbricks_tui.language.opening import NamedModel, library_models
from dlbricks_tui.language.orders import LanguageFailed, LanguageMeasured, stored_precision
from dlbricks_tui.runtime.errors import FrameworkMissingError, RegistryError, WorkerError, WorkerHungError
from dlbricks_tui.runtime.llama_bench import LlamaTest, run_test
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.variant import CachePrecision, FlashAttention
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import EndToEnd, Peaks
from tests.language.bench import Bench
from tests.language.fake_llama_bench import OF_PROMPT, token_ms
from tests.language.stored import peaks_of
from tests.language.test_decoder import library
from tests.language.test_whole_model import small
from tests.runs.killing import eventually
from tests.store.samples import system

GGUF = tuple(it for it in WeightPrecision if it not in ("int4", "int8", "f32", "bf16"))
# Some of its blocks are windowed, and some have more bits.
TINY = NamedModel(
    "tiny",
    replace(
        library("gemma-3-1b"),
        hidden=64,
        blocks=14,
        head_size=32,
        rotary_size=32,
        inner=256,
        vocabulary=320,
        window=16,
        windowed=((True,) * 5 + (False,)) * 2 + (True,) * 2,
    ),
)
PROMPT, GENERATE = 24, 41


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A llama-bench on the PATH."""
    return fake(tmp_path / "bin" / "llama-bench", monkeypatch)


def fake(path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path.parent.mkdir()
    source = Path(__file__).with_name("fake_llama_bench.py").read_text(encoding="utf-8")
    path.write_text(f"#!{sys.executable} -IS\n{source}", encoding="utf-8")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{path.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_LOG", str(path.parent / "log"))
    return path


@pytest.fixture(autouse=True)
def _few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llama_rounds, "_FEWEST", 2)
    monkeypatch.setattr(language_measuring, "measure_peaks", peaks_of)


@pytest.fixture
def bench(tmp_path: Path, engine: Path) -> Bench:
    bench = Bench(tmp_path)
    found = Registry(bench.data.path).find_engine("llama.cpp")
    assert found is not None and found.python == str(engine)
    bench.runtime = found.with_threads(1)
    return bench


def commands(engine: Path) -> Sequence[str]:
    """Return how the engine was called, and forget it."""
    log = engine.parent / "log"
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    log.unlink(missing_ok=True)
    return lines


OPTIONS = LanguageOptions(prompt=PROMPT, generate=GENERATE, runtimes=("llama.cpp",), threads=(1,))


def measured(
    bench: Bench, *, end_to_end: bool = False, model: NamedModel = TINY, runtime: Runtime | None = None
) -> bool:
    asked = replace(
        bench.question(model, PROMPT, GENERATE), runtime=runtime or bench.runtime, precision=WeightPrecision.Q4_K_M
    )
    return bench.measure(bench.order(asked, end_to_end=end_to_end))


def answered(bench: Bench, model: NamedModel = TINY, **changes: Any) -> LanguageAnswer:
    (answer,) = asking.stored_answers([model], replace(OPTIONS, **changes), bench.data)
    return answer


def test_times_of_small_models_add_up_to_the_whole_one(bench: Bench, engine: Path) -> None:
    before = answered(bench)
    assert before.is_predicted and before.coverage == 0 and not before.is_measured
    assert measured(bench, end_to_end=True), bench.told
    assert isinstance(bench.told[-1], LanguageMeasured)
    found, model = answered(bench), TINY.architecture
    rich, windowed = sum(rich_blocks(model, WeightPrecision.Q4_K_M)), sum(model.windowed)
    exact = [token_ms(model.blocks, rich, windowed, depth) for depth in (0, PROMPT + 8, PROMPT + GENERATE - 2 - 15 + 8)]
    assert found.prefill_ms == pytest.approx(OF_PROMPT * exact[0] * PROMPT, rel=1e-6)
    assert 1000 / found.decode_tokens_per_second == pytest.approx((exact[1] + exact[2]) / 2, rel=1e-6)
    assert found.coverage == 1 and found.is_measured and found.head == "the last token"
    assert (found.precision, found.cache) == ("q4_k_m", "f16")
    low, high = found.intervals.decode_tokens_per_second
    assert low < found.decode_tokens_per_second < high < 1.1 * low
    blocks = next(it for it in found.parts if it.part == "blocks")
    assert blocks.decode_ms == pytest.approx(exact[1] - 3 - 0.001 * (PROMPT + 8), rel=0.02)
    # The whole model took just as long.
    assert found.measured is not None and found.measured.engine == "llama.cpp 4242-0a1b2c3d"
    assert found.measured.prefill_ms == pytest.approx(found.prefill_ms, rel=1e-6)
    assert found.measured.decode_tokens_per_second == pytest.approx(found.decode_tokens_per_second, rel=1e-6)
    assert commands(engine) and not list(bench.data.cache.glob("whole-model-*"))
    # What is known is not measured again, and lengths nearby are predicted from it.
    assert measured(bench, end_to_end=True) and not commands(engine)
    longer = next(it for it in found.contexts if it.context == 512)
    assert (
        longer.predicted and longer.low < longer.tokens_per_second < found.decode_tokens_per_second < 1.5 * longer.high
    )


def test_a_prompt_of_many_seconds_is_predicted_from_a_shorter_one_of_the_model(
    bench: Bench, engine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(llama_cpp, "_MOST_MS", 0.0)
    monkeypatch.setattr(llama_cpp, "_FEWEST_TOKENS", PROMPT // 2)
    assert measured(bench)
    assert {it.split(" -o ")[0].partition(" -p ")[2] for it in commands(engine)} == {"12 -n 0 -d 0", "0 -n 16 -d 12"}
    found = answered(bench)
    assert found.is_measured and found.is_predicted
    for low, high in (found.intervals.prefill_ms, found.intervals.decode_tokens_per_second):
        assert high < 1.3 * low, "other models of the engine tell less"
    assert basis_sentence(found) == "~ all of it is predicted from a shorter prompt, as the model is large"
    # Now that the engine is known to be slow, a measurement would take even fewer tokens.
    monkeypatch.setattr(llama_cpp, "_FEWEST_TOKENS", PROMPT // 4)
    assert answered(bench).is_measured and measured(bench) and not commands(engine)


def test_other_models_are_predicted_from_small_ones_of_the_engine(bench: Bench) -> None:
    other = NamedModel("other", replace(TINY.architecture, hidden=512))
    before = answered(bench, other)
    assert measured(bench)
    with ResultsDatabase(bench.data.store) as store:
        assert [it.threads for it in store.peaks()] == [1], "predictions go on with the rates of the ratios"
    after = answered(bench, other)
    assert after.is_predicted and not after.is_measured
    width = [(high - low) / it.total_ms for it in (before, after) for low, high in [it.intervals.total_ms]]
    assert width[1] < width[0] / 1.5
    # The engine of this test is slow.
    assert after.total_ms > 3 * before.total_ms


def test_small_models_in_a_large_cache_predict_no_other_beyond_the_measured_bandwidth(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow_memory(system: str, threads: int) -> Peaks:
        return replace(peaks_of(system, threads), bandwidth=((MEMORY, 1e-3),))

    monkeypatch.setattr(language_measuring, "measure_peaks", slow_memory)
    assert measured(bench)
    found = answered(bench, NamedModel("other", replace(TINY.architecture, hidden=512)))
    assert found.bound_tokens_per_second and found.decode_tokens_per_second <= found.bound_tokens_per_second
    own = answered(bench)
    assert own.bound_tokens_per_second and own.decode_tokens_per_second > own.bound_tokens_per_second


def test_another_system_is_predicted_from_what_the_engine_reached_of_its_peaks(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dlbricks_tui.language.predicting.quick_peaks", peaks_of)
    assert measured(bench)
    with ResultsDatabase(bench.data.store) as store:
        store.add(system("other"), peaks_of("other", 1), system("silent"))
    found = {it.system: it for it in language_on_systems([TINY], OPTIONS, bench.data)}
    here, other, silent = found[fingerprint().id], found["other"], found["silent"]
    assert [it.rests_on for it in (here, other, silent)] == ["bricks", "peaks", "description"]
    assert other.compared_with == (here.system,) and here.decode_tokens_per_second
    assert other.decode_tokens_per_second == pytest.approx(here.decode_tokens_per_second, rel=0.5)


def test_probes_and_fleets_refuse_an_engine_that_tells_no_times_of_layers(bench: Bench) -> None:
    asked = replace(bench.question(TINY, PROMPT, GENERATE), precision=WeightPrecision.Q4_K_M)
    assert bench.measure(bench.order(asked, probe=True))
    (failure,) = [it for it in bench.told if isinstance(it, LanguageFailed)]
    assert "leave --probe out" in failure.line
    options = FleetOptions(
        scheduler="tcp://127.0.0.1:1", language_models=("smollm2-135m",), measuring=MeasureOptions(runtime="llama.cpp")
    )
    with pytest.raises(FleetError, match="choose another runtime"):
        fleet_request(options, (), bench.data)


def test_models_of_other_sizes_and_variants_share_no_result(bench: Bench) -> None:
    assert measured(bench)
    assert answered(bench, replace(TINY, name="twin")).is_measured, "a name alone makes no difference"
    assert not answered(bench, NamedModel("wider", replace(TINY.architecture, inner=512))).is_measured
    variants: tuple[dict[str, Any], ...] = (
        {"threads": (2,)},
        {"caches": (CachePrecision.INT8,)},
        {"flash_attention": (FlashAttention.OFF,)},
    )
    assert not any(answered(bench, **it).is_measured for it in variants)


def test_variants_are_passed_on_and_told(bench: Bench, engine: Path) -> None:
    runtime = bench.runtime.with_cache(CachePrecision.INT8).with_flash_attention(FlashAttention.ON)
    assert measured(bench, runtime=runtime)
    lines = commands(engine)
    assert all(re.search(r"-o json -r \d -t 1 -fa 1 -ctk q8_0 -ctv q8_0$", it) for it in lines), lines
    assert bench.told[0].line == "tiny, llama.cpp, q4_k_m, int8 cache, flash attention on, 1 thread: measuring"  # type: ignore[attr-defined]
    answer = answered(bench, caches=(CachePrecision.INT8,), flash_attention=(FlashAttention.ON,))
    assert answer.coverage == 1 and answer.memory.cache < answered(bench).memory.cache


@pytest.mark.parametrize(
    ("manner", "reason"),
    [
        ("crash", r"llama-bench ended with status 1: GGML_ASSERT\(n_tokens > 0\) failed"),
        ("killed", "llama-bench was killed by SIGKILL, often for lack of memory"),
        ("rubbish", r"llama-bench answered something else than times: \[\{\}, 17\]"),
        ("hang", "llama-bench did not answer within 1 s and was ended"),
    ],
)
def test_an_engine_that_fails_is_told_in_one_line(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, manner: str, reason: str
) -> None:
    monkeypatch.setenv("FAKE_MANNER", manner)
    monkeypatch.setattr(llama_rounds, "_SECONDS", 0.5)
    monkeypatch.setattr(llama_rounds, "_PATIENCE", 0.0)
    assert measured(bench)
    (failed,) = [it for it in bench.told if isinstance(it, LanguageFailed)]
    assert re.fullmatch(f"tiny, llama.cpp, q4_k_m, 1 thread: not measured: {reason}", failed.line.replace("0 s", "1 s"))
    assert not list(bench.data.cache.glob("whole-model-*"))
    assert answered(bench).is_predicted


def test_small_models_go_on_without_the_whole_one(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_MANNER", f"without {TINY.architecture.blocks}")
    assert measured(bench, end_to_end=True)
    (failed,) = [it for it in bench.told if isinstance(it, LanguageFailed)]
    assert failed.line.endswith("llama-bench ended with status 1: the whole model is too much")
    found = answered(bench)
    assert found.coverage == 1 and found.measured is None


@pytest.mark.parametrize(("killed", "rounds"), [("14", 4), ("38", 3), ("14 20", 0), ("1", 0)])
def test_an_engine_that_is_killed_takes_its_round_only(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, killed: str, rounds: int
) -> None:
    # Each round has three tests of four models, and at least two rounds count.
    monkeypatch.setenv("FAKE_MANNER", f"killed in {killed}")
    monkeypatch.setattr(llama_rounds, "_NARROW", 0.0)
    monkeypatch.setattr(llama_rounds, "_MOST", 4)
    assert measured(bench)
    assert any(isinstance(it, LanguageFailed) for it in bench.told) is not bool(rounds)
    assert answered(bench).is_measured is bool(rounds)
    with ResultsDatabase(bench.data.store) as store:
        assert {it.statistics.count for it in store.records(EndToEnd)} == ({rounds} if rounds else set())


def test_a_full_disk_is_told_in_one_line(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(end_to_end, "_LEFT_FREE", 1 << 60)
    assert measured(bench)
    (failed,) = [it for it in bench.told if isinstance(it, LanguageFailed)]
    assert "free some, or name a data folder on a larger disk" in failed.line
    assert not list(bench.data.cache.glob("whole-model-*"))


@pytest.mark.parametrize("name", ["TemporaryDirectory", "TemporaryFile"])
def test_a_disk_without_room_for_another_file_is_told_in_one_line(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def full(**_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(tempfile, name, full)
    assert measured(bench)
    (failed,) = [it for it in bench.told if isinstance(it, LanguageFailed)]
    assert "No space left on device; free some of the disk" in failed.line


def test_the_engine_ends_with_the_process_that_measures(bench: Bench, tmp_path: Path) -> None:
    ask = (
        "import sys; from pathlib import Path; from dlbricks_tui.runtime.registry import Registry\n"
        "from dlbricks_tui.runtime.llama_bench import LlamaTest, run_test\n"
        "runtime = Registry(Path(sys.argv[1])).find_engine('llama.cpp')\n"
        "import os; os.environ['FAKE_MANNER'] = 'hang'\n"
        "run_test(runtime, Path(sys.argv[2]) / 'x.gguf', LlamaTest(1, 0, 0))"
    )
    with subprocess.Popen([sys.executable, "-c", ask, str(bench.data.path), str(tmp_path)]) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        if not children.exists():
            process.kill()
            pytest.skip("needs Linux")
        eventually(lambda: children.read_text().split())
        engine = Path("/proc", children.read_text().split()[0])
        process.send_signal(signal.SIGKILL)
        process.wait()
        eventually(lambda: not engine.exists())


def test_an_engine_is_a_runtime_of_language_models_only(bench: Bench, engine: Path) -> None:
    registry, data = Registry(bench.data.path), bench.data
    assert [it.name for it in runtimes_of(data)][-1] == "default-llama.cpp"
    assert all(it.framework != "llama.cpp" for it in registry.known())
    assert "default-llama.cpp" in language_answers.runtimes_here(data)
    assert not commands(engine), "its version is asked, and nothing else"
    for name in ("llama.cpp", "default-llama.cpp"):
        with pytest.raises(RegistryError, match=r"runs language models only: use .* with `dlbricks llm`"):
            registry.find(name)
    for more in ({"at_once": 2}, {"framework": "mxnet"}):
        with pytest.raises(RegistryError, match="leave --at-once and other frameworks out"):
            added_runtime(data, str(engine), **more)
    added = added_runtime(data, str(engine), name="mine", threads=2)
    assert added.identity == "llama.cpp-4242-0a1b2c3d threads-2"
    assert registry.check("mine") == added
    with pytest.raises(RegistryError, match="runs language models only"):
        registry.find("mine")
    (answer,) = asking.stored_answers([TINY], replace(OPTIONS, runtimes=("mine",), threads=()), data)
    assert (answer.runtime, answer.threads) == (added.identity, 2)
    forget_runtime("mine", data)
    with pytest.raises(RegistryError, match="is on the PATH and cannot be removed"):
        forget_runtime("default-llama.cpp", data)


def test_a_program_that_is_no_llama_bench_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "other" / "llama-bench"
    path.parent.mkdir()
    path.write_text("#!/bin/sh\necho hello\n")
    path.chmod(0o755)
    data = DataFolder(tmp_path / "data")
    with pytest.raises(WorkerError, match="does not answer like llama-bench: give the path of"):
        added_runtime(data, str(path))
    path.write_text("#!/bin/sh\necho $0: libllama.so: cannot open shared object file >&2\nexit 127\n")
    with pytest.raises(WorkerError, match=r"ended with status 127: .*: cannot open shared object file"):
        added_runtime(data, str(path))
    with pytest.raises(FrameworkMissingError, match=r"llama-cpp-python cannot be imported: .*; install it there: pip "):
        added_runtime(data, sys.executable, framework="llama.cpp")
    monkeypatch.setenv("PATH", str(path.parent))
    assert Registry(data.path).engines() == ()
    with pytest.raises(RegistryError, match="no llama-bench that works is on the PATH"):
        Registry(data.path).find_engine("llama.cpp")


def test_an_engine_says_which_precisions_it_has(bench: Bench) -> None:
    assert stored_precision(bench.runtime, WeightPrecision.INT4) is WeightPrecision.Q4_K_M
    assert stored_precision(bench.runtime, WeightPrecision.INT8) is WeightPrecision.Q8_0
    with pytest.raises(LanguageError, match=r"^llama.cpp stores weights as q4_k_m, q4_0, q8_0, f16, and not as f32: "):
        answered(bench, precisions=(WeightPrecision.F32,))
    with pytest.raises(LanguageError, match=r"^ONNX Runtime stores weights as int4, int8, f32, and not as q4_0: "):
        answered(bench, precisions=(WeightPrecision.Q4_0,), runtimes=("onnxruntime",))
    with pytest.raises(LanguageError, match="caches of 8 bits with flash attention only"):
        answered(bench, caches=(CachePrecision.INT8,), flash_attention=(FlashAttention.OFF,))
    # Where another runtime has it, the others are left out, and the same precision is asked once.
    both = replace(OPTIONS, precisions=tuple(WeightPrecision), runtimes=("onnxruntime", "llama.cpp"))
    answers = asking.stored_answers([TINY], both, bench.data)
    assert sorted((it.runtime.partition("-")[0], it.precision) for it in answers) == [
        *(("llama.cpp", it) for it in ("f16", "q4_0", "q4_k_m", "q8_0")),
        *(("onnxruntime", it) for it in ("f32", "int4", "int8")),
    ]


def test_flash_attention_and_the_cache_are_what_ifs_that_a_measurement_of_them_proves(bench: Bench) -> None:
    assert measured(bench)
    before = {it.id: it for it in answered(bench, what_ifs=True).what_ifs}
    assert {"flash-on", "flash-off", "cache-int8", "vocabulary-half", "runtime-onnxruntime"} <= before.keys()
    (eight,) = language_answers.questions([TINY], replace(OPTIONS, precisions=(WeightPrecision.INT8,)), bench.data)
    weights = {it.id: it.prefill.precision.value for it in variants_of(eight, ()) if it.id.startswith("weights")}
    assert weights == {"weights-int4": "q4_k_m", "weights-q4_0": "q4_0"}
    assert "head-last" not in before, "it scores the last token anyway"
    assert not any(it.measured for it in before.values())
    assert measured(bench, runtime=bench.runtime.with_flash_attention(FlashAttention.OFF))
    after = {it.id: it for it in answered(bench, what_ifs=True).what_ifs}
    assert {name for name, it in after.items() if it.measured} == {"flash-off"}
    assert after["flash-off"].predicted == before["flash-off"].predicted


def test_results_of_small_models_name_their_method(bench: Bench) -> None:
    assert measured(bench)
    with ResultsDatabase(bench.data.store) as store:
        found = store.records(EndToEnd)
    assert found and {it.protocol for it in found} == {PROTOCOL}
    assert all(re.fullmatch(r"(prefill|decode) \d+, tiny with \d+ blocks", it.name) for it in found)


@pytest.mark.parametrize("precision", GGUF)
def test_every_model_of_the_library_follows_from_few_blocks(precision: WeightPrecision) -> None:
    for named in library_models():
        model = as_llama_cpp_reads(named.architecture)
        found, rich = small_models(model, precision), rich_blocks(model, precision)
        assert len(found.models) <= 4
        for weights, wanted in ((found.whole, (1, model.blocks, sum(rich), sum(model.windowed))),):
            for place, of in enumerate(wanted):
                counts = [(1, len(it), sum(it), sum(model.windowed[: len(it)]))[place] for it in found.models]
                assert sum(map(float.__mul__, weights, map(float, counts))) == pytest.approx(of, abs=1e-4), named.name
        largest, whole = (size_bytes(gguf_tensors(model, precision, it)) for it in (max(found.models, key=len), rich))
        # Files of many gigabytes have a small part of the blocks.
        assert max(map(len, found.models)) <= max(2 * model.blocks / 3, 2), named.name
        assert largest < max(1.7e9, 0.5 * whole), named.name


@pytest.mark.parametrize("precision", GGUF)
@pytest.mark.parametrize("name", ["gpt-oss-20b", "mixtral-8x7b", "llama-3.1-8b"])
def test_a_token_reads_what_the_file_has_of_it(name: str, precision: WeightPrecision) -> None:
    model = as_llama_cpp_reads(library(name))
    tensors = gguf_tensors(model, precision, rich_blocks(model, precision))
    experts, others = ([it for it in tensors if ("_exps." in it.name) is of] for of in (True, False))
    wanted = size_bytes(others[1:]) + size_bytes(experts) * model.active_experts / max(1, model.experts)
    read = [it for it in llama_cpp.works(model, precision, Step.decode(1), 16) if it.part is not ModelPart.TABLE]
    assert others[0].name == "token_embd.weight"
    assert sum(it.times * it.work.weight_bytes for it in read) == pytest.approx(wanted, rel=0.001)


def types(model: Architecture, precision: WeightPrecision, block: int = 0) -> dict[str, str]:
    tensors: list[GgufTensor] = gguf_tensors(model, precision, rich_blocks(model, precision))
    own = f"blk.{block}."
    return {it.name.removeprefix(own): it.type for it in tensors if it.name.startswith(own) or "." not in it.name[4:-7]}


def test_tensors_have_the_types_that_llama_cpp_chooses() -> None:
    found = library("llama-3.2-1b")
    some, more = (types(found, WeightPrecision.Q4_K_M, block) for block in (2, 0))
    assert (some["attn_v.weight"], some["ffn_down.weight"], some["attn_q.weight"]) == ("Q4_K",) * 3
    assert (more["attn_v.weight"], more["ffn_down.weight"], more["attn_q.weight"]) == ("Q6_K", "Q6_K", "Q4_K")
    assert more["token_embd.weight"] == "Q6_K" and "output.weight" not in more
    plain = types(found, WeightPrecision.Q4_0)
    assert (plain["token_embd.weight"], plain["ffn_down.weight"], plain["attn_norm.weight"]) == ("Q6_K", "Q4_0", "F32")
    # Rows of 576 numbers have no blocks of 256.
    odd = types(library("smollm2-135m"), WeightPrecision.Q4_K_M)
    assert (odd["token_embd.weight"], odd["attn_q.weight"], odd["attn_v.weight"]) == ("Q8_0", "Q5_0", "Q8_0")
    assert odd["ffn_down.weight"] == "Q6_K"
    experts = types(library("mixtral-8x7b"), WeightPrecision.Q4_K_M)
    assert (experts["attn_k.weight"], experts["attn_output.weight"]) == ("Q8_0", "Q5_K")
    assert types(library("gpt-oss-20b"), WeightPrecision.Q8_0)["ffn_up_exps.weight"] == "MXFP4"


@pytest.mark.parametrize(
    ("name", "precision", "gigabytes"),
    [
        ("llama-2-7b", "q4_k_m", 4.08),
        ("llama-2-7b", "q4_0", 3.83),
        ("llama-2-7b", "q8_0", 7.16),
        ("llama-3.1-8b", "q4_k_m", 4.92),
        ("qwen2.5-7b", "q4_k_m", 4.68),
        ("phi-3-mini", "q4_k_m", 2.39),
        ("gemma-2-2b", "q4_k_m", 1.71),
    ],
)
def test_files_are_as_large_as_published_ones(name: str, precision: str, gigabytes: float) -> None:
    model = as_llama_cpp_reads(library(name))
    kind = WeightPrecision(precision)
    assert size_bytes(gguf_tensors(model, kind, rich_blocks(model, kind))) / 1e9 == pytest.approx(gigabytes, rel=0.005)


@pytest.mark.parametrize(
    "name", ["llama-3.2-1b", "qwen2.5-0.5b", "qwen3-0.6b", "gemma-2-2b", "gemma-3-1b", "phi-3-mini", "granite-3.3-2b"]
)
def test_a_file_holds_the_model(name: str, tmp_path: Path) -> None:
    window: dict[str, Any] = {"window": 16, "windowed": (True, False, True)} if library(name).windowed else {}
    model = as_llama_cpp_reads(small(name, **window))
    path = tmp_path / "model.gguf"
    write_gguf(path, model, WeightPrecision.Q8_0, rich_blocks(model, WeightPrecision.Q8_0))
    read = architecture_of_gguf(GgufHeader(path.read_bytes()))
    same: dict[str, Any] = {"has_short_caches": model.has_short_caches, "attention_scale": model.attention_scale}
    same |= {"embedding_scale": model.embedding_scale, "epsilon": model.epsilon, "qkv_bias": model.qkv_bias}
    same |= {"logit_scale": model.logit_scale, "residual_scale": model.residual_scale}
    assert replace(read, **same) == replace(model, is_tied=read.is_tied)


def test_a_run_that_takes_too_long_is_ended(bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FAKE_MANNER", "hang")
    began = time.monotonic()
    with pytest.raises(WorkerHungError):
        run_test(bench.runtime, tmp_path / "x.gguf", LlamaTest(1, 0, 0), seconds=0.2)
    assert time.monotonic() - began < 20


@pytest.mark.soak
def test_llama_cpp_itself_runs_the_files(tmp_path: Path) -> None:
    """Builds the bindings for Python from source, which takes about ten minutes."""
    if shutil.which("cmake") is None or shutil.which("c++") is None:
        pytest.skip("needs cmake and a C++ compiler")
    place = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    pip = [
        str(place / "bin" / "pip"),
        "install",
        "--quiet",
        "--no-binary",
        "llama-cpp-python",
        "llama-cpp-python>=0.3.16",
    ]
    if subprocess.run(pip, check=False).returncode:
        pytest.skip("needs the source of llama-cpp-python from a package index")
    check_bindings(tmp_path, place)


def check_bindings(folder: Path, place: Path) -> None:
    """Check that llama.cpp reads files of all families and precisions, and that estimates are near it."""
    bench = Bench(folder)
    runtime = added_runtime(bench.data, str(place), framework="llama.cpp", threads=1)
    assert runtime.identity.startswith("llama.cpp-python-0.")
    for name in ("llama-3.2-1b", "mistral-7b", "qwen2.5-0.5b", "qwen3-0.6b", "gemma-2-2b", "gemma-3-1b", "phi-3-mini",
                 "granite-3.3-2b", "mixtral-8x7b", "qwen3-30b-a3b", "gpt-oss-20b"):  # fmt: skip
        some: dict[str, Any] = {"window": 16, "windowed": (True, False, True)} if library(name).windowed else {}
        some |= {"experts": 8, "active_experts": 2} if library(name).experts else {}
        sizes: dict[str, Any] = {"hidden": 256, "heads": 8, "kv_heads": 2, "head_size": 32, "inner": 256}
        model = as_llama_cpp_reads(replace(small(name, **some), **sizes))
        for precision in GGUF if name == "llama-3.2-1b" else GGUF[:1]:
            path = folder / f"{name}.gguf"
            write_gguf(path, model, precision, rich_blocks(model, precision))
            for test in (LlamaTest(20, 0, 0), LlamaTest(0, 4, 20)):
                assert run_test(runtime, path, test, 2), (name, precision)
    with_cache = runtime.with_cache(CachePrecision.INT8).with_flash_attention(FlashAttention.ON)
    assert run_test(with_cache, path, LlamaTest(20, 0, 0))
    wide = replace(TINY.architecture, hidden=512, inner=2048, vocabulary=4096, heads=8)
    named = NamedModel("wide", wide)
    assert measured(bench, end_to_end=True, model=named, runtime=runtime), bench.told
    (found,) = asking.stored_answers([named], replace(OPTIONS, runtimes=(runtime.name,)), bench.data)
    assert found.measured is not None
    assert found.decode_tokens_per_second == pytest.approx(found.measured.decode_tokens_per_second, rel=0.5)
    assert found.prefill_ms == pytest.approx(found.measured.prefill_ms, rel=0.5)
