"""Language models on the systems of a store: measured, predicted from peaks and from other systems, or unknown."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.api.documents import document
from dlbricks_tui.api.language_answers import LanguageOptions
from dlbricks_tui.api.language_models import LanguageOnSystem, language_on_systems, ranked
from dlbricks_tui.cli.main import main
from dlbricks_tui.documents.systems import language_systems_answer, language_systems_parts
from dlbricks_tui.errors import UserError
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.language import predicting
from dlbricks_tui.language.architecture import WeightPrecision
from dlbricks_tui.language.opening import NamedModel, open_language_model
from dlbricks_tui.language.orders import LanguageQuestion
from dlbricks_tui.language.predicting import usual_ms
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import Record
from tests.documents.test_language import text_of
from tests.language.stored import RATES, bricks_of, peaks_of
from tests.store.samples import system

MODEL, OTHER = "llama-3.2-1b", "qwen2.5-0.5b"
OPTIONS = LanguageOptions(prompt=64, generate=16)
THREADS = 4


def bricks(data: DataFolder, name: str, model: str, times: float, python: str = "3.12") -> list[Record]:
    """Return results of each brick of a model, which took so many times the usual latency."""
    runtime = replace(Registry(data.path).find("onnxruntime"), python_version=python).with_threads(THREADS)
    sizes, precision = open_language_model(model), WeightPrecision.INT4
    asked = LanguageQuestion(sizes, runtime, precision, OPTIONS.prompt, OPTIONS.generate)
    decoders = map(asked.decoder, asked.steps)
    return bricks_of(decoders, lambda work: times * usual_ms(work, RATES), system=name, runtime=runtime.identity)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DataFolder:
    monkeypatch.setattr(predicting, "quick_peaks", peaks_of)
    predicting._quick_rates.cache_clear()
    return stored_systems(tmp_path)


def stored_systems(path: Path) -> DataFolder:
    """Store three systems: one that measured, one with peaks of the same height, and one with a description."""
    data = DataFolder(path)
    names = ("fast", "peaked", "silent")
    described = [system(it, memory_bytes=(64 << 30) if it != "silent" else 1 << 28) for it in names]
    with ResultsDatabase(data.store) as store:
        store.add(*described, peaks_of("fast", THREADS), peaks_of("peaked", THREADS), *bricks(data, "fast", MODEL, 2.0))
    (data.path / "prices.toml").write_text('[dollars_per_hour]\nfast = 0.36\n"peaked" = 0.18\n', encoding="utf-8")
    return data


def asked(data: DataFolder, *names: str, model: str = MODEL, **options: Any) -> dict[str, LanguageOnSystem]:
    found = language_on_systems([open_language_model(model)], replace(OPTIONS, **options), data, names)
    return {it.system: it for it in found}


ON_ALL = ("fast", "peaked", "silent")


def test_a_system_that_measured_is_answered_from_its_bricks_and_priced(data: DataFolder) -> None:
    fast = asked(data, *ON_ALL)["fast"]
    assert (fast.rests_on, fast.coverage, fast.threads, fast.compared_with) == ("bricks", 1.0, THREADS, ())
    # Another version of Python than here.
    assert " python-3.12 " in fast.runtime
    assert fast.decode_tokens_per_second is not None and fast.cost is not None and fast.prefill_tokens_per_second
    assert fast.cost.dollars_per_million == pytest.approx(0.36 / (fast.decode_tokens_per_second * 3600) * 1e6)
    in_prompt = 0.36 / (fast.prefill_tokens_per_second * 3600) * 1e6
    assert fast.cost.dollars_per_million_of_prompt == pytest.approx(in_prompt)
    low, high = fast.cost.interval
    assert fast.decode_interval is not None
    assert (low, high) == pytest.approx([0.36 / (it * 3600) * 1e6 for it in reversed(fast.decode_interval)])


def test_the_threads_of_the_settings_count_on_this_host_only(data: DataFolder) -> None:
    here, model = fingerprint().id, open_language_model(MODEL)
    found = language_on_systems([model], OPTIONS, data, [here, "fast"], threads_here=3)
    assert {it.system: it.threads for it in found} == {here: 3, "fast": THREADS}


def test_what_one_system_reaches_of_its_peaks_predicts_another(data: DataFolder) -> None:
    found = asked(data, *ON_ALL)
    fast, peaked = found["fast"], found["peaked"]
    assert (peaked.rests_on, peaked.coverage, peaked.compared_with) == ("peaks", 0.0, ("fast",))
    # Its peaks are those of the other one, and so are its predictions.
    assert peaked.decode_tokens_per_second == pytest.approx(fast.decode_tokens_per_second, rel=1e-3)
    assert peaked.prefill_tokens_per_second == pytest.approx(fast.prefill_tokens_per_second, rel=1e-3)
    assert width(peaked) > 5 * width(fast)
    with ResultsDatabase(data.store) as store:
        store.add(peaks_of("twice", THREADS, 2.0), system("twice"))
    twice = asked(data, "twice")["twice"]
    assert twice.decode_tokens_per_second == pytest.approx(2 * (fast.decode_tokens_per_second or 0.0), rel=0.02)


def width(it: LanguageOnSystem) -> float:
    assert it.decode_interval is not None and it.decode_tokens_per_second
    return (it.decode_interval[1] - it.decode_interval[0]) / it.decode_tokens_per_second


def test_few_bricks_of_another_model_say_more_than_peaks(data: DataFolder) -> None:
    before = width(asked(data, "peaked")["peaked"])
    with ResultsDatabase(data.store) as store:
        store.add(*bricks(data, "peaked", OTHER, 3.0))
    found = asked(data, *ON_ALL)
    assert found["peaked"].rests_on == "other models"
    rates = [found[it].decode_tokens_per_second or 0.0 for it in ("fast", "peaked")]
    assert rates[0] / rates[1] == pytest.approx(1.5, rel=0.05)
    assert width(found["peaked"]) < before


def test_of_a_system_that_is_only_described_no_speed_is_told(data: DataFolder) -> None:
    silent = asked(data, *ON_ALL)["silent"]
    assert (silent.rests_on, silent.decode_tokens_per_second, silent.cost, silent.verdict) == (
        "description",
        None,
        None,
        None,
    )
    assert not silent.fits
    assert document(silent)["first_token_ms"] is None


def test_the_best_comes_first_and_wide_predictions_are_no_winners(data: DataFolder) -> None:
    found = list(asked(data, *ON_ALL).values())
    assert [it.system for it in found] == ["fast", "peaked", "silent"]
    assert [(it.quickest, it.cheapest) for it in found] == [(True, True), (False, False), (False, False)]
    assert (found[1].verdict, found[1].reason[:12]) == ("unknown", "its interval")
    assert language_systems_answer(found).startswith("fast is the quickest: ")
    # A single system is neither.
    assert not asked(data, "fast")["fast"].quickest


def test_verdicts_are_those_of_every_comparison(data: DataFolder) -> None:
    fast = asked(data, "fast")["fast"]
    rate = fast.decode_tokens_per_second or 0.0

    def slower(share: float, name: str) -> LanguageOnSystem:
        now = rate * (1 - share)
        return replace(fast, system=name, decode_tokens_per_second=now, decode_interval=(0.995 * now, 1.005 * now))

    best = slower(0.0, "best")
    found = {it.system: it for it in ranked([slower(0.3, "slow"), best, slower(0.001, "equal")])}
    assert {name: it.verdict for name, it in found.items()} == {"best": None, "slow": "slower", "equal": "same"}


def test_this_host_and_all_systems_are_asked_without_names(data: DataFolder) -> None:
    found = asked(data)
    assert {*ON_ALL} < {*found}
    assert [it.system for it in found.values() if it.is_host] == [*({*found} - {*ON_ALL})]
    several = language_on_systems([open_language_model(MODEL)], replace(OPTIONS, threads=(1, 4)), data, ["fast"])
    assert sorted(it.threads for it in several) == [1, 4]


def test_words_fit_and_say_what_is_known(data: DataFolder) -> None:
    found = language_on_systems([open_language_model(MODEL)], OPTIONS, data, ON_ALL)
    (data.path / "prices.toml").unlink()
    unpriced = language_on_systems([open_language_model(MODEL)], OPTIONS, data, ON_ALL)
    for width in (80, 120):
        text, without = (text_of([*language_systems_parts(it)], width) for it in (found, unpriced))
        assert max(map(len, text.splitlines())) <= width
        assert "Llama 3.2 1B" in text and "quickest, cheapest" in text and "does not fit" in text
        joined = " ".join(text.split())
        assert "what fast reached of theirs" in joined and "no price" not in joined
        assert "nothing but its description is known of silent" in joined
        assert "`dlbricks llm llama-3.2-1b --threads 4 --prompt 64 --generate 16 --probe` there" in joined
        assert "$/MILLION" not in without
        assert "no price of fast, peaked: write it into prices.toml" in " ".join(without.split())


def test_bad_input_is_refused_in_a_line(data: DataFolder, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UserError, match="nowhere"):
        asked(data, "nowhere")
    ask = partial(run_on, data.path)
    assert ask("systems", "llm", MODEL, "--system", "nowhere") == 2
    assert ask("systems", "llm", "no-such-model") == 2
    assert ask("systems", "llm", MODEL, "no-such-model", "--system", "fast", "--prompt", "64", "--generate", "16") == 1
    told = capsys.readouterr()
    assert "Traceback" not in told.err and "left out: " in told.err and "fast" in told.out


def run_on(path: Path, *words: str) -> int:
    return main([*words, "--data-dir", str(path)])


def test_a_named_model_may_be_a_file(data: DataFolder) -> None:
    model = NamedModel("own", open_language_model(MODEL).architecture)
    assert language_on_systems([model], OPTIONS, data, ["fast"])[0].coverage == 1.0
