"""The runtimes with results on a system, and the batch sizes and levels of these results."""

from collections.abc import Collection
from dataclasses import replace

from dlbricks_tui.estimate.lookup import levels_measured
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime, Settings
from dlbricks_tui.runtime.traits import TRAITS
from dlbricks_tui.runtime.variant import stated_precision, stated_threads
from dlbricks_tui.store import records
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.filters import equal
from dlbricks_tui.store.selections import by_id, combinations


class MeasuredRuntimes:
    """The runtimes with results on a system."""

    def __init__(self, data: DataFolder, store: ResultsDatabase, system: str) -> None:
        self.system = system
        self._store = store
        self._levels: dict[str, tuple[Level, ...]] = {}
        self._registered = Registry(data.path).known()
        self._stored = by_id(store.runtimes())
        ways = combinations(store.select(equal(system=system), order=()))
        self.measured = tuple(dict.fromkeys(it.runtime for it in ways if it.runtime.partition("-")[0] in TRAITS))
        self._of_models: dict[str, set[str]] | None = None

    def of_model(self, name: str) -> Collection[str]:
        """Return the identities of the runtimes with results that name a model: of runs, or of the whole model."""
        if self._of_models is None:
            timed = self._store.select(equal(of="model", system=self.system), order=())
            named = set(zip(timed.values("name"), timed.values("runtime"), strict=True))
            named |= {(it, run.runtime) for run in self._store.runs() if run.system == self.system for it in run.models}
            self._of_models = {}
            for model, identity in named:
                self._of_models.setdefault(model, set()).add(identity)
        return self._of_models.get(name, ())

    def is_plain(self, identity: str) -> bool:
        """Return whether a runtime has the engine with which models are timed, or one of this host names another."""
        variables = {name for name, _ in TRAITS[identity.partition("-")[0]].default_engine}
        names_engine = any(word.partition("=")[0] in variables for word in identity.split(" "))
        return not names_engine or any(it.with_identity(identity) is not None for it in self._registered)

    def of(self, identity: str) -> Runtime:
        """Return the runtime of an identity: a variant of one of this host, or as the store describes it."""
        for each in self._registered:
            found = each.with_identity(identity)
            if found is not None:
                return found
        return _described(identity, self._stored.get(identity))

    def loading(self, runtime: Runtime) -> Runtime | None:
        """Return the runtime that reads models as this one fuses them; threads do not matter.

        None: the usual one of its format.
        """
        here = [it for it in self._registered if it.framework == runtime.framework]
        alike = next((it for it in here if it.version == runtime.version), here[0] if here else None)
        if alike is None:
            return None
        settings = replace(
            alike.settings, precision=runtime.settings.precision, environment=runtime.settings.environment
        )
        return replace(alike, settings=settings) if alike.computes_in(runtime.settings.precision) else None

    def levels(self, identity: str) -> tuple[Level, ...]:
        """Return the levels with results of a runtime."""
        if identity not in self._levels:
            self._levels[identity] = levels_measured(self._store, self.system, identity)
        return self._levels[identity]

    def batch_sizes(self, model: str) -> tuple[int, ...]:
        """Return the batch sizes at which a model was timed end to end."""
        found = self._store.select(equal(of="model", name=model, system=self.system), order=()).numbers("batch_size")
        return tuple(sorted({int(size) for size in found.tolist()}))


def _described(identity: str, stored: records.Runtime | None) -> Runtime:
    """Return a runtime by its identity alone: it is not on this host."""
    first, *words = identity.split(" ")
    framework, _, version = first.partition("-")
    python = next((word.removeprefix("python-") for word in words if word.startswith("python-")), "")
    variables = [word.partition("=") for word in words if "=" in word]
    environment = tuple(sorted((name, value) for name, _, value in variables))
    settings = Settings(stated_threads(identity), environment, precision=stated_precision(identity))
    return Runtime(stored.name if stored else framework, "", framework, version, python, settings)
