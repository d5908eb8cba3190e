"""Drives: users ask the whole model in its engine, which makes at most a batch of answers together."""

from __future__ import annotations

from hashlib import sha256

from dlbricks_tui.bricks.identity import whole_model
from dlbricks_tui.language.end_to_end import WholeModelEngine, engine_record, engine_title, result_of_engine
from dlbricks_tui.language.orders import Drive, DrivenLoad, LanguageQuestion
from dlbricks_tui.measure.stopping import FixedRuns, samples_of
from dlbricks_tui.scenarios.tokens import TokenLoad, TokenSamples, TokenScenario, TokenServing
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import EndToEnd, Record, System
from dlbricks_tui.store.selections import equal

_RATE = "tokens_per_second"


def drive(asked: LanguageQuestion, drive: Drive, engine: WholeModelEngine, system: System, run: str) -> list[Record]:
    """Let users ask the engine, and return the delays of their answers for the store."""
    scenario = drive.scenario
    prompt, generate, largest = scenario.prompt, scenario.generate, scenario.largest(drive.serving)
    engine.load()
    # What runs first is slower.
    engine.serve(prompt, 2, largest, ((0.0,),) * min(drive.users, largest))
    found = TokenSamples.of(engine.serve(prompt, generate, largest, drive.pauses), generate)
    record = engine_record(asked.runtime, engine, system)
    delays = {"first token": found.first_ms, "later tokens": found.later_ms}
    keys = _keys(asked, scenario, drive.serving, drive.users)
    records: list[Record] = [system, record]
    for key, (words, delays_ms) in zip(keys, delays.items(), strict=True):
        samples = samples_of(delays_ms, FixedRuns(len(delays_ms)))
        records.append(
            result_of_engine(
                key,
                f"{asked.model.name} {words}, {drive.words}",
                record,
                system,
                run,
                samples,
                ((_RATE, found.tokens_per_second),),
            )
        )
    return records


def driven_load(
    store: ResultsDatabase,
    system: str,
    asked: LanguageQuestion,
    scenario: TokenScenario,
    serving: TokenServing,
    users: int,
) -> DrivenLoad | None:
    """Return the newest drive of so many users; None if there was none."""
    first, later = (
        store.least_first(EndToEnd, equal(system=system, model=key)) for key in _keys(asked, scenario, serving, users)
    )
    if not first or not later:
        return None
    newest = later[-1]
    samples = TokenSamples(first[-1].samples_ms, newest.samples_ms, float(dict(newest.noise)[_RATE] or 0.0))
    engine = engine_title(newest.runtime)
    return DrivenLoad(engine=engine, load=TokenLoad.of(scenario, users, samples), when=newest.when)


def _keys(asked: LanguageQuestion, scenario: TokenScenario, serving: TokenServing, users: int) -> list[str]:
    """Return the keys of both delays in the store. The bounds do not change what the engine does."""
    first = asked.decoder(asked.steps[0])
    key = whole_model(first.graph).key
    does = (first.counts, asked.runtime.identity, scenario.generate, scenario.think_s, scenario.largest(serving))
    texts = [repr((key, *does, serving.value, users, delay)) for delay in ("first", "later")]
    return [sha256(it.encode()).hexdigest()[: len(key)] for it in texts]
