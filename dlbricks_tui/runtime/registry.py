"""The registered runtimes: interpreters that the user has added, beside our own."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dlbricks_tui.files import in_turn, read_json, read_text, write_atomically
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.recorded_host import processors_here, recorded_host
from dlbricks_tui.runtime import llama_bench
from dlbricks_tui.runtime.errors import FrameworkMissingError, RegistryError, WorkerError, WorkerLostError
from dlbricks_tui.runtime.runtime import UNTUNED, Runtime, Settings, settings_from
from dlbricks_tui.runtime.traits import ENGINES, LLAMA_CPP, MXNET, ONNX_RUNTIME, TRAITS, Format, Traits, usual_traits
from dlbricks_tui.runtime.variant import ANY_VARIANT, AskedVariant, Precision

if TYPE_CHECKING:
    from dlbricks_tui.runtime.protocol import Described

_OWN_NAMES = tuple(traits.own_runtime for traits in (*TRAITS.values(), *ENGINES.values()))
NOT_INSTALLED = "none"

# Importing a framework from a cold network disk takes its time.
DESCRIBE_SECONDS = 120.0
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
SCHEMA = 1


class Registry:
    """The runtimes known to one data folder."""

    def __init__(self, data_folder: Path) -> None:
        self._file = data_folder / "runtimes.json"
        self._log = DataFolder(data_folder).log / "runtimes.log"
        self._seen = DataFolder(data_folder).cache / "framework-version"
        self._engines_seen = DataFolder(data_folder).cache / "engines.json"

    def default(self, environment: Mapping[str, str] = os.environ) -> Runtime:
        """Return MXNet in this interpreter with the settings of the shell, also where it is not installed any more."""
        return _own_runtime(MXNET, self._mxnet_version(), environment)

    def preferred_for(self, formats: Collection[Format], asked: AskedVariant = ANY_VARIANT) -> Runtime | None:
        """Return the usual runtime for models with files of these formats that can have a variant; None without any.

        MXNet of this interpreter comes first, then its other frameworks, then the registered runtimes.
        """
        # Another version of dlbricks may have registered a framework that this one does not know.
        known = (it for it in self.all() if it.framework in TRAITS)
        return next((it for it in known if it.traits.format in formats and it.can_have(asked)), None)

    @property
    def preferred_format(self) -> Format:
        """The format of the usual runtime: models with files of several formats have this one."""
        # Unlike `default`, this keeps no record of the version of MXNet.
        if _version_of(MXNET.packages):
            return MXNET.format
        found = self.preferred_for(tuple(Format))
        return Format.ONNX if found is None else found.traits.format

    def one_of_each_format(
        self, named: Runtime | None = None, asked: AskedVariant = ANY_VARIANT
    ) -> Mapping[Format, Runtime]:
        """Return one runtime for each format, the named one among them, to read models and to look up their results.

        One for MXNet models is always there: their results stay when MXNet is not installed any more. Runtimes that
        cannot have the variant are left out, and so are formats without others.
        """
        preferred = {form: self.preferred_for({form}, asked) for form in Format}
        found = {form: runtime for form, runtime in preferred.items() if runtime is not None}
        if (mxnet := self.default()).can_have(asked):
            found.setdefault(MXNET.format, mxnet)
        return {**found, named.traits.format: named} if named is not None and named.can_have(asked) else found

    def runtime_for(self, formats: Collection[Format] = tuple(Format)) -> Runtime:
        """Return the installed runtime for models that all have files of these formats; any by default."""
        if not formats:
            every = " and ".join(form.value for form in Format)
            raise RegistryError(f"no runtime runs both {every} models: choose models of one format")
        found = self.preferred_for(formats)
        if found is None:
            usual = usual_traits(Format.ONNX if Format.ONNX in formats else next(iter(formats)))
            raise RegistryError(
                f"no runtime here runs {usual.format.value} models: {usual.install_here}, or register an interpreter "
                f"that has {usual.title}: `dlbricks runtimes add PATH`"
            )
        return found

    def all(self) -> tuple[Runtime, ...]:
        """Return the runtimes of this interpreter whose frameworks are installed, then the registered ones."""
        mxnet = (self.default(),) if _version_of(MXNET.packages) else ()
        versions = [(traits, _version_of(traits.packages)) for traits in TRAITS.values() if traits is not MXNET]
        others = [_own_runtime(traits, version) for traits, version in versions if version is not None]
        here = processors_here()
        return (*mxnet, *others, *(it.on(here) for it in self._registered() if it.framework not in ENGINES))

    def engines(self) -> tuple[Runtime, ...]:
        """Return the programs that run language models only: a llama-bench on the PATH, then the registered ones.

        The one on the PATH is started once to tell its version.
        """
        here, registered = processors_here(), [it for it in self._registered() if it.framework in ENGINES]
        # A host that is recorded has other programs.
        program = shutil.which(llama_bench.PROGRAM) if recorded_host() is None else None
        own = () if program is None else (self._engine_on_path(program),)
        return tuple([it.on(here) for it in (*own, *registered) if it is not None])

    def find_engine(self, name: str) -> Runtime | None:
        """Return the engine of that name, or the first one with the framework of that name; None if none has it."""
        if not self._is_engine(name):
            return None
        engines = self.engines()
        for found in (*(it for it in engines if it.name == name), *(it for it in engines if it.framework == name)):
            return found
        raise RegistryError(
            f"no {llama_bench.PROGRAM} that works is on the PATH: build {LLAMA_CPP.title}, or name one of yours: "
            "`dlbricks runtimes add PATH`"
        )

    def known(self) -> tuple[Runtime, ...]:
        """Return all runtimes and, last, MXNet of this interpreter if it is not installed, for its stored results."""
        runtimes, mxnet = self.all(), self.default()
        return runtimes if mxnet in runtimes else (*runtimes, mxnet)

    def with_identity(self, identity: str) -> Runtime | None:
        """Return the variant of a known runtime that has this identity; None if none has it."""
        return next((found for it in self.known() if (found := it.with_identity(identity)) is not None), None)

    def find(self, name: str) -> Runtime:
        """Return the known runtime of that name, or the first one with the framework of that name."""
        if self._is_engine(name):
            raise RegistryError(
                f"{LLAMA_CPP.title} runs language models only: use {name} with `dlbricks llm`, or another runtime"
            )
        known = self.known()
        for found in (*(it for it in known if it.name == name), *(it for it in known if it.framework == name)):
            return found
        names = ", ".join(runtime.name for runtime in self.all())
        if name in TRAITS:
            raise RegistryError(
                f"no runtime here has {TRAITS[name].title}: {TRAITS[name].install_here}, or register an interpreter "
                f"that has it: `dlbricks runtimes add PATH`; there are {names}"
            )
        raise RegistryError(f"no runtime is called {name}; there are {names} (`dlbricks runtimes add PATH` adds one)")

    def as_registered(self, runtime: Runtime) -> Runtime:
        """Return a runtime with the number of threads in its registration: None if each host decides."""
        settings = {it.name: it.settings for it in self._registered()}.get(runtime.name) or settings_from(os.environ)
        return replace(runtime, settings=replace(runtime.settings, threads=settings.threads))

    def find_installed(self, name: str) -> Runtime:
        """Return the runtime of that name; refuse MXNet of this interpreter if it is not installed."""
        found = self.find(name)
        if found not in self.all():
            raise RegistryError(
                f"runtime {found.name} is {found.traits.title} in {found.python}, which has none: "
                f"{found.traits.install_here}, or register an interpreter that has it: `dlbricks runtimes add PATH`"
            )
        return found

    def add(
        self,
        python: str,
        name: str | None = None,
        settings: Settings = UNTUNED,
        framework: str | None = None,
        at_once: int = 1,
    ) -> Runtime:
        """Register an interpreter, or the virtual environment that holds it, after a test of its framework.

        Of several frameworks in it, the first of `TRAITS` is taken unless one is named. The runtime executes `at_once`
        operators of a model at the same time.
        """
        interpreter = _interpreter(python)
        if framework in ENGINES or llama_bench.is_llama_bench(interpreter):
            if at_once > 1 or framework not in (None, *ENGINES):
                raise RegistryError(
                    f"a {llama_bench.PROGRAM} is {LLAMA_CPP.title}, which runs one operator at a time: leave --at-once "
                    "and other frameworks out"
                )
            version = llama_bench.version_of(str(interpreter))
            name = name or f"{LLAMA_CPP.framework}-{version}"
            return self._add(Runtime(name, str(interpreter), LLAMA_CPP.framework, version, "", settings))
        described = self._first_described(
            [
                Runtime(name or python, str(interpreter), each, "", "", settings)
                for each in (TRAITS if framework is None else (framework,))
            ]
        )
        version = ".".join(described.python.split(".")[:2])
        usual_name = f"{described.framework}-{described.version}-py{version}"
        facts = described.framework, described.version, described.python
        runtime = Runtime(name or usual_name, str(interpreter), *facts, settings)
        if at_once > 1:
            if not runtime.traits.parallel_variable:
                raise RegistryError(f"{runtime.traits.title} runs the operators of a model one after another")
            runtime = runtime.side_by_side(at_once)
        return self._add(runtime)

    def _add(self, runtime: Runtime) -> Runtime:
        if not NAME.fullmatch(runtime.name):
            raise RegistryError(f"{runtime.name!r} is not a valid name; use letters, digits, dots and hyphens")

        def with_it(registered: Sequence[Runtime]) -> list[Runtime]:
            if runtime.name in (*_OWN_NAMES, *(known.name for known in registered)):
                raise RegistryError(f"there is a runtime called {runtime.name} already; give this one another --name")
            return [*registered, runtime]

        self._change(with_it)
        return runtime.on(processors_here())

    def check(self, name: str) -> Runtime:
        """Start the runtime and return it as it describes itself; the registry keeps that description."""
        before = self.find_engine(name) or self.find(name)
        if before.framework in ENGINES:
            now = replace(before, version=llama_bench.version_of(before.python))
        else:
            found = self._describe(before)
            now = replace(before, framework=found.framework, version=found.version, python_version=found.python)
        if now != before and now.name not in _OWN_NAMES:
            self._change(
                lambda all_: [replace(now, settings=it.settings) if it.name == now.name else it for it in all_]
            )
        return now

    def remove(self, name: str) -> None:
        """Remove the runtime from the list; its results stay."""
        found = self.find_engine(name) or self.find(name)
        if found.name in _OWN_NAMES:
            where = "on the PATH" if found.framework in ENGINES else "this interpreter"
            raise RegistryError(f"the {found.name} runtime is {where} and cannot be removed")
        self._change(lambda registered: [known for known in registered if known.name != found.name])

    def _is_engine(self, name: str) -> bool:
        own = [it.own_runtime for it in ENGINES.values()]
        return name in (*ENGINES, *own, *(it.name for it in self._registered() if it.framework in ENGINES))

    def _engine_on_path(self, program: str) -> Runtime | None:
        """Return the engine on the PATH; None if it does not work. Its version is kept as long as its file is."""
        kept: dict[str, str] = {}
        with suppress(OSError, ValueError):
            kept = read_json(self._engines_seen)
        facts = os.stat(program)  # noqa: PTH116 - as above
        key = f"{program} {facts.st_size} {facts.st_mtime_ns}"
        version = kept.get(key) if isinstance(kept, dict) else None
        if not isinstance(version, str):
            try:
                version = llama_bench.version_of(program)
            except WorkerError:
                return None
            with suppress(OSError):
                write_atomically(self._engines_seen, json.dumps({key: version}))
        return Runtime(LLAMA_CPP.own_runtime, program, LLAMA_CPP.framework, version, "", settings_from(os.environ))

    def _first_described(self, candidates: Sequence[Runtime]) -> Described:
        missing: list[FrameworkMissingError] = []
        for candidate in candidates:
            try:
                return self._describe(candidate)
            except FrameworkMissingError as error:
                missing.append(error)
            except WorkerLostError as lost:
                raise RegistryError(
                    f"{lost}; a runtime has to be a Python interpreter of version 3.7 or newer"
                ) from lost
        reasons = dict.fromkeys(error.reason for error in missing if error.reason)
        if len(reasons) < 2:
            raise missing[0]
        installs = ", or ".join(TRAITS[candidate.framework].install_there for candidate in reversed(candidates))
        raise FrameworkMissingError(
            f"{candidates[0].python}: {'; '.join(reasons)}; install one of them there: {installs}"
        )

    def _describe(self, runtime: Runtime) -> Described:
        # Loaded here: most commands describe no runtime.
        from dlbricks_tui.runtime.process import Worker
        from dlbricks_tui.runtime.protocol import Describe

        with Worker(runtime, self._log) as worker:
            return worker.ask(Describe(), DESCRIBE_SECONDS)

    def _mxnet_version(self) -> str:
        installed = _version_of(MXNET.packages)
        seen = None
        # An unreadable note is written anew.
        with suppress(OSError, ValueError):
            seen = read_text(self._seen).strip()
        if installed and installed != seen:
            # The version is part of the keys of results, which must be found when MXNet is not installed any more.
            with suppress(OSError):
                write_atomically(self._seen, f"{installed}\n")
        return installed or seen or NOT_INSTALLED

    def _registered(self) -> tuple[Runtime, ...]:
        try:
            document = read_json(self._file)
            return tuple(_from_json(entry) for entry in document["runtimes"])
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise RegistryError(f"cannot read {self._file}: {error.strerror}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise RegistryError(f"{self._file} is not a list of runtimes: {error!r}; repair or delete it") from error

    def _change(self, change: Callable[[Sequence[Runtime]], list[Runtime]]) -> None:
        try:
            with in_turn(self._file):
                document = {"schema": SCHEMA, "runtimes": [asdict(each) for each in change(self._registered())]}
                write_atomically(self._file, json.dumps(document, indent=2) + "\n")
        except OSError as error:
            raise RegistryError(f"cannot write {self._file}: {error.strerror}") from error


def _own_runtime(traits: Traits, version: str, environment: Mapping[str, str] = os.environ) -> Runtime:
    recorded = recorded_host()
    python = platform.python_version() if recorded is None else recorded.python
    settings = settings_from(environment if recorded is None else {})
    found = Runtime(traits.own_runtime, sys.executable, traits.framework, version, python, settings)
    return found.on(processors_here())


def quantising_runtime() -> Runtime:
    """Return ONNX Runtime in this interpreter, which has the onnx package for its tool that quantises models."""
    version = _version_of(ONNX_RUNTIME.packages)
    if version is None:
        raise FrameworkMissingError(
            f"models are quantised by the tool of {ONNX_RUNTIME.title}, which is not installed here: "
            f"{ONNX_RUNTIME.install_here}"
        )
    return _own_runtime(ONNX_RUNTIME, version, {})


def _version_of(packages: Iterable[str]) -> str | None:
    from importlib import metadata

    if (recorded := recorded_host()) is not None:
        return recorded.version_of(packages)
    # A folder of packages changes when one is installed or removed.
    changed = tuple([os.stat(folder).st_mtime_ns for folder in sys.path if os.path.isdir(folder)])  # noqa: PTH112, PTH116
    return _installed_version(tuple(packages), metadata.version, changed)


@lru_cache(maxsize=64)
def _installed_version(
    packages: tuple[str, ...], version: Callable[[str], str], _changed: tuple[int, ...]
) -> str | None:
    """Return the version of the first package that is installed; questions about runtimes ask for it many times."""
    from importlib.metadata import PackageNotFoundError

    for package in packages:
        with suppress(PackageNotFoundError):
            # MXNet itself does not know the number of its post-release.
            return version(package).split(".post")[0]
    return None


def _interpreter(text: str) -> Path:
    # Not resolved: the interpreter of a virtual environment is a link to one that lacks its packages.
    # os.path takes any text, also the home folder of nobody.
    path = Path(os.path.expanduser(text)).absolute()  # noqa: PTH111 - as above
    if path.is_dir():
        path = path / "bin" / "python"
    if not path.is_file() or not os.access(path, os.X_OK):
        raise RegistryError(
            f"{path} is not a program; give the path of a Python interpreter or of a virtual environment"
        )
    return path


def _from_json(entry: Mapping[str, Any]) -> Runtime:
    settings = entry["settings"]
    threads = settings["threads"]
    if threads is not None and not isinstance(threads, int):
        raise TypeError(f"threads is {threads!r}")
    environment = tuple((str(name), str(value)) for name, value in settings["environment"])
    limit = settings["memory_limit_bytes"]
    if limit is not None and not isinstance(limit, int):
        raise TypeError(f"memory_limit_bytes is {limit!r}")
    texts = {name: str(entry[name]) for name in ("name", "python", "framework", "version", "python_version")}
    # Entries of earlier versions have none.
    precision = Precision(settings.get("precision", Precision.F32))
    return Runtime(**texts, settings=Settings(threads, environment, limit, precision))
