"""Fixtures of the tests of the terminal UI; its tests may be coroutines."""

import asyncio
import gc
import inspect
import math
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from textual.app import App
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.screen import Screen

from dlbricks_tui.api import estimating, followed_runs, run_watch, scope, store_contents
from dlbricks_tui.api import model_reading as work
from dlbricks_tui.api.run_watch import RunWatch
from dlbricks_tui.api.scenarios import ScenarioOfModel
from dlbricks_tui.api.session import WorkbenchSession
from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.jobs.folder import RunFolder
from dlbricks_tui.models.cache import Cache
from dlbricks_tui.models.library import Library
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.scenarios import predicting
from dlbricks_tui.scenarios.scenario import fewest_queries
from dlbricks_tui.share.spare import SpareRun
from dlbricks_tui.tui import scenario
from dlbricks_tui.tui.keys import keymap
from dlbricks_tui.tui.widgets import rows
from dlbricks_tui.wording import numbers
from tests.jobs.carrying import stands_for_processes
from tests.store.samples import system
from tests.tui import actions_run, results
from tests.tui.application import NOW, small_library
from tests.tui.driving import draw
from tests.tui.processes import SCRIPT, Process
from tests.tui.results import NoFramework, store_run
from tests.tui.stored_results import HERE, store_results

_PREDICTED = dict[object, ScenarioOfModel | str]()
# The actions of `actions_run.txt` by the test that runs them.
LISTED = actions_run.listed()


@pytest.fixture
def one_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host of the stored results in place of this one."""
    for module in (results, estimating, scope, store_contents):
        monkeypatch.setattr(module, "fingerprint", lambda: system(HERE))


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    async def go_on(*_: float) -> None:
        await asyncio.sleep(0)

    # Textual waits after each key until the process uses little time; `settled` waits for the right things.
    monkeypatch.setattr("textual.app.wait_for_idle", go_on)
    monkeypatch.setattr("textual.pilot.wait_for_idle", go_on)
    monkeypatch.setattr(work, "SETTLED_SECONDS", 0.0)
    monkeypatch.setattr(work, "BREATH_SECONDS", 0.0)
    monkeypatch.setattr(work, "SHARE_WHILE_MEASURING", 1.0)
    monkeypatch.setattr(rows, "SETTLE_SECONDS", 0.001)
    monkeypatch.setattr(run_watch, "SECONDS_BETWEEN_LOOKS", 0.05)
    # Keys of a config count in its test only.
    monkeypatch.setattr(keymap, "_in_use", keymap.Keymap())
    # The runs of tests stay silent.
    monkeypatch.setattr(followed_runs, "COUNTDOWN_AFTER_SECONDS", math.inf)
    monkeypatch.setattr(run_watch, "SECONDS_BETWEEN_IDLE_LOOKS", 0.05)


@pytest.fixture(autouse=True)
def _a_moment_after_all_results(monkeypatch: pytest.MonkeyPatch) -> None:
    # Ages on screens would change from day to day.
    monkeypatch.setattr(numbers, "now", lambda: NOW)


@pytest.fixture(autouse=True)
def _host_of_unknown_load(monkeypatch: pytest.MonkeyPatch) -> None:
    # The host may be quiet or busy.
    monkeypatch.setattr(RunWatch, "_look_at_load", lambda _: None)


@pytest.fixture(autouse=True)
def _no_spare_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SpareRun, "prepare", lambda *_: None)


@pytest.fixture(autouse=True)
def _many_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    # Pictures are finer where the terminal has many colours.
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)


@pytest.fixture(autouse=True)
def _drawing_only_at_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    # A terminal is drawn many times a second; `settled` draws the screen that the test then looks at.
    def postpone(screen: Screen[Any]) -> None:
        if screen is screen.app.screen:
            screen._dirty_widgets.clear()
            screen.app._update_mouse_over(screen)
        else:
            draw(screen)

    monkeypatch.setattr(Screen, "_compositor_refresh", postpone)


@pytest.fixture(autouse=True, scope="session")
def _collected_rarely() -> Iterator[None]:
    # The objects of all imported modules stay for good: looking through them again and again takes much of a test.
    usual = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    yield
    gc.set_threshold(*usual)
    gc.unfreeze()


@pytest.fixture(autouse=True, scope="session")
def _style_sheets_parsed_once() -> Iterator[None]:
    # All applications of the tests have the same style sheets, in a few themes.
    parse_rules, known = Stylesheet._parse_rules, dict[tuple[object, ...], list[RuleSet]]()

    def parsed(sheet: Stylesheet, css: str, read_from: tuple[str, str], *rest: Any, **options: Any) -> list[RuleSet]:
        key = (css, read_from, rest, *sorted(options.items()), *sheet._variables.items())
        if key not in known:
            known[key] = parse_rules(sheet, css, read_from, *rest, **options)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stylesheet, "_parse_rules", parsed)
        yield


@pytest.fixture(autouse=True)
def _actions_as_listed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    ran = actions_run.record(monkeypatch)
    yield
    missing = {*LISTED.get(request.node.nodeid, ())} - ran
    assert not missing, f"{actions_run.FILE.name} lists actions that this test did not run: {sorted(missing)}"


@pytest.fixture(scope="session")
def _library_in_cache(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, object]:
    """The entries that the cache has when each model of the library was read and decomposed."""
    folder, entries = tmp_path_factory.mktemp("library"), dict[str, object]()
    loader = Loader(folder, NoFramework())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Cache, "write", lambda _, key, content: entries.setdefault(key, content))
        for source in Library(small_library(folder / "samples"), folder).samples():
            decompose(loader.load(source), None, loader.cache)
    return entries


@pytest.fixture(autouse=True)
def _library_read_once(_library_in_cache: Mapping[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    # Each test has a cache of its own; reading the library again would take most of the time of the tests.
    read = Cache.read
    monkeypatch.setattr(Cache, "read", lambda cache, key: _library_in_cache.get(key) or read(cache, key))


@pytest.fixture(autouse=True)
def _messages_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    # On a slow host a message could expire before the test reads it.
    notify = App.notify

    def notify_for_good(app: App[None], message: str, **options: Any) -> None:
        notify(app, message, **{**options, "timeout": 3600.0})

    monkeypatch.setattr(App, "notify", notify_for_good)


@pytest.fixture(scope="session")
def _measured_once(tmp_path_factory: pytest.TempPathFactory) -> DataFolder:
    data = DataFolder(tmp_path_factory.mktemp("measured"))
    store_run(data, ["resnet18_v1"])
    store_run(data, ["squeezenet1.1"], share=0.6, end_to_end=False)
    return data


@pytest.fixture
def rough_predictions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Predict scenarios from few and short tests: the room of scenarios tests what is predicted."""
    for name in ("_TESTS", "_TESTS_IN_BATCHES"):
        monkeypatch.setattr(predicting, name, 20)
    monkeypatch.setattr(predicting, "_queries", lambda scenario, _: fewest_queries(scenario.percentile))


@pytest.fixture
def predicted_once(rough_predictions: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Predict equal settings on equal stores once, from few tests: most tests look at what stands beside them."""
    for name, value in (("_REQUESTS_IN_ALL", 1), ("_REQUESTS_IN_ALL_IN_BATCHES", 1), ("_FEWEST_TESTS", 4)):
        monkeypatch.setattr(predicting, name, value)
    predict: Callable[..., ScenarioOfModel | str] = scenario.predict_scenario

    def predicted(session: WorkbenchSession, *asked: object) -> ScenarioOfModel | str:
        spec, choices, _, settings = asked
        stored = tuple(sorted((it.name, it.read_bytes()) for it in session.data.store.glob("*") if it.is_file()))
        known = stored, spec, choices, settings
        if known not in _PREDICTED:
            _PREDICTED[known] = predict(session, *asked)
        return _PREDICTED[known]

    monkeypatch.setattr(scenario, "predict_scenario", predicted)


@pytest.fixture
def asked_for(monkeypatch: pytest.MonkeyPatch) -> list[RunFolder]:
    """The folders of the jobs that a test asks for; no process works on them."""
    folders: list[RunFolder] = []
    monkeypatch.setattr("dlbricks_tui.api.jobs.start_apart", lambda folder, _: folders.append(folder))
    return folders


@pytest.fixture
def library_without_latencies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Estimate the open model only: after each change of a setting all others would be estimated anew."""
    monkeypatch.setattr(work, "estimate_library", lambda *_, **__: iter(()))


@pytest.fixture
def new(tmp_path: Path) -> DataFolder:
    """A data folder without measurements."""
    return DataFolder(tmp_path / "new")


@pytest.fixture
def measured(_measured_once: DataFolder, tmp_path: Path) -> DataFolder:
    """A data folder with all of resnet18_v1 and some of squeezenet1.1 measured, on this host and on another system."""
    return DataFolder(shutil.copytree(_measured_once.path, tmp_path / "measured"))


@pytest.fixture(scope="session")
def _stored_once(tmp_path_factory: pytest.TempPathFactory) -> DataFolder:
    data = DataFolder(tmp_path_factory.mktemp("stored"))
    store_results(data)
    return data


@pytest.fixture
def stored(_stored_once: DataFolder, tmp_path: Path) -> DataFolder:
    """A data folder with results that look the same on every host."""
    return DataFolder(shutil.copytree(_stored_once.path, tmp_path / "stored"))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine test to its end; a plugin for this one function would be one more dependency."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in wanted}))
    return True


@pytest.fixture
def process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Process]:
    """The processes that a script stands for, one after the other."""
    folder = tmp_path / "process"
    folder.mkdir()
    stands_for_processes(monkeypatch, "-S", "-c", SCRIPT, folder)
    made = Process(folder)
    yield made
    made.kill()
