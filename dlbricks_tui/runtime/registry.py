"""The interpreters that the user has told us of, beside our own."""

import json
import os
import platform
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from dlbricks_tui.atomic_write import in_turn, write_atomically
from dlbricks_tui.runtime.errors import FrameworkMissingError, RegistryError
from dlbricks_tui.runtime.process import Worker
from dlbricks_tui.runtime.protocol import Describe, Described
from dlbricks_tui.runtime.runtime import (
    FRAMEWORKS,
    MXNET,
    ONNX_RUNTIME,
    UNTUNED,
    Format,
    Runtime,
    Settings,
    settings_from,
)
from dlbricks_tui.settings import DataFolder

DEFAULT, DEFAULT_ONNX = "default", "default-onnx"
# The same module is published under several names.
DISTRIBUTIONS = ("mxnet", "mxnet-mkl", "mxnet-native")
_OURS = (DEFAULT, DEFAULT_ONNX)
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

    def default(self, environment: Mapping[str, str] = os.environ) -> Runtime:
        """This interpreter with the settings of the shell; where its framework is gone, as it was last seen."""
        version = self._framework_version()
        return Runtime(DEFAULT, sys.executable, MXNET, version, platform.python_version(), settings_from(environment))

    def default_onnx(self, environment: Mapping[str, str] = os.environ) -> Runtime | None:
        """ONNX Runtime in this interpreter, if it is there."""
        version = _version_of((ONNX_RUNTIME,))
        if version is None:
            return None
        settings = settings_from(environment)
        return Runtime(DEFAULT_ONNX, sys.executable, ONNX_RUNTIME, version, platform.python_version(), settings)

    def preferred(self) -> Runtime:
        """Who runs MXNet's models where nobody names one: the default, or else the first that was registered."""
        default = self.default()
        if _version_of(DISTRIBUTIONS):
            return default
        return next((it for it in self._registered() if it.runs is Format.MXNET), default)

    def preferred_onnx(self) -> Runtime | None:
        """Who runs ONNX models where nobody names one."""
        return next((it for it in self.all() if it.runs is Format.ONNX), None)

    def one_of_each_format(self, named: Runtime | None = None) -> Mapping[Format, Runtime]:
        """Who runs models of which format, the named one among them; one for MXNet's is always there."""
        onnx = self.preferred_onnx()
        found = {Format.MXNET: self.preferred(), **({} if onnx is None else {Format.ONNX: onnx})}
        return found if named is None else {**found, named.runs: named}

    def suited(self, formats: Collection[Format]) -> Runtime:
        """Who runs models of these formats where nobody names one."""
        if Format.ONNX not in formats:
            return self.preferred()
        if len(formats) > 1:
            raise RegistryError("no runtime runs models of MXNet and of ONNX: take those of one format at a time")
        found = self.preferred_onnx()
        if found is None:
            raise RegistryError(
                "no runtime here runs ONNX models: pip install 'dlbricks-tui[onnx]', or register an interpreter that "
                "has ONNX Runtime: dlbricks runtimes add PATH"
            )
        return found

    def all(self) -> tuple[Runtime, ...]:
        """Those of this interpreter and all registered, in the order of their registration."""
        onnx = self.default_onnx()
        return (self.default(), *(() if onnx is None else (onnx,)), *self._registered())

    def find(self, name: str) -> Runtime:
        """The runtime of that name."""
        known = self.all()
        for runtime in known:
            if runtime.name == name:
                return runtime
        names = ", ".join(runtime.name for runtime in known)
        raise RegistryError(f"no runtime is called {name}; there are {names} (dlbricks runtimes add PATH adds one)")

    def add(
        self,
        python: str,
        name: str | None = None,
        settings: Settings = UNTUNED,
        framework: str | None = None,
        at_once: int = 1,
    ) -> Runtime:
        """Registers an interpreter, or the virtual environment that holds it, after it has shown that it works.

        Where it has both frameworks and none is named, it is one that runs MXNet. Of a model it runs so many operators
        `at_once`.
        """
        interpreter = _interpreter(python)
        described = self._first_described(
            [
                Runtime(name or python, str(interpreter), each, "", "", settings)
                for each in (FRAMEWORKS if framework is None else (framework,))
            ]
        )
        runtime = _as_described(Runtime(name or _name(described), str(interpreter), "", "", "", settings), described)
        if at_once > 1:
            runtime = runtime.side_by_side(at_once)
        if not NAME.fullmatch(runtime.name):
            raise RegistryError(f"{runtime.name!r} cannot be a name; take letters, digits, dots and hyphens")

        def with_it(registered: Sequence[Runtime]) -> list[Runtime]:
            if runtime.name in (*_OURS, *(known.name for known in registered)):
                raise RegistryError(f"there is a runtime called {runtime.name} already; give this one another --name")
            return [*registered, runtime]

        self._change(with_it)
        return runtime

    def check(self, name: str) -> Runtime:
        """Starts the runtime and returns it as it is now, which is remembered."""
        before = self.find(name)
        now = _as_described(before, self._describe(before))
        if name not in _OURS and now != before:
            self._change(lambda registered: [now if known.name == name else known for known in registered])
        return now

    def remove(self, name: str) -> None:
        """Forgets the runtime; what it has measured stays."""
        self.find(name)
        if name in _OURS:
            raise RegistryError(f"the {name} runtime is this interpreter and cannot be removed")
        self._change(lambda registered: [known for known in registered if known.name != name])

    def _first_described(self, candidates: Sequence[Runtime]) -> Described:
        missing: list[FrameworkMissingError] = []
        for candidate in candidates:
            try:
                return self._describe(candidate)
            except FrameworkMissingError as error:
                missing.append(error)
        raise missing[0]

    def _describe(self, runtime: Runtime) -> Described:
        with Worker(runtime, self._log) as worker:
            return worker.ask(Describe(), DESCRIBE_SECONDS)

    def _framework_version(self) -> str:
        installed = _version_of(DISTRIBUTIONS)
        seen = self._seen.read_text(encoding="utf-8").strip() if self._seen.is_file() else None
        if installed and installed != seen:
            # What was computed with it must be found again on the day that the framework is gone. A folder that
            # cannot be written to is told about where something of worth is lost.
            with suppress(OSError):
                write_atomically(self._seen, f"{installed}\n")
        return installed or seen or NOT_INSTALLED

    def _registered(self) -> tuple[Runtime, ...]:
        try:
            document = json.loads(self._file.read_text(encoding="utf-8"))
            return tuple(_from_json(entry) for entry in document["runtimes"])
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise RegistryError(f"cannot read {self._file}: {error.strerror}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise RegistryError(f"{self._file} is no list of runtimes: {error!r}; mend or delete it") from error

    def _change(self, change: Callable[[Sequence[Runtime]], list[Runtime]]) -> None:
        try:
            with in_turn(self._file):
                document = {"schema": SCHEMA, "runtimes": [asdict(each) for each in change(self._registered())]}
                write_atomically(self._file, json.dumps(document, indent=2) + "\n")
        except OSError as error:
            raise RegistryError(f"cannot write {self._file}: {error.strerror}") from error


def _version_of(distributions: Iterable[str]) -> str | None:
    from importlib import metadata

    for distribution in distributions:
        with suppress(metadata.PackageNotFoundError):
            # MXNet does not count the repairs of its packaging.
            return metadata.version(distribution).split(".post")[0]
    return None


def _interpreter(text: str) -> Path:
    # Not resolved: the interpreter of a virtual environment is a link to one that lacks its packages.
    path = Path(text).expanduser().absolute()
    if path.is_dir():
        path = path / "bin" / "python"
    if not path.is_file() or not os.access(path, os.X_OK):
        raise RegistryError(f"{path} is no program; give the path of a Python interpreter or of a virtual environment")
    return path


def _as_described(runtime: Runtime, described: Described) -> Runtime:
    return replace(runtime, framework=described.framework, version=described.version, python_version=described.python)


def _name(described: Described) -> str:
    python = ".".join(described.python.split(".")[:2])
    return f"{described.framework}-{described.version}-py{python}"


def _from_json(entry: Mapping[str, Any]) -> Runtime:
    settings = entry["settings"]
    threads = settings["threads"]
    if threads is not None and not isinstance(threads, int):
        raise TypeError(f"threads is {threads!r}")
    environment = tuple((str(name), str(value)) for name, value in settings["environment"])
    # Lists from before there were memory limits have none.
    limit = settings.get("memory_limit_bytes")
    if limit is not None and not isinstance(limit, int):
        raise TypeError(f"memory_limit_bytes is {limit!r}")
    texts = {name: str(entry[name]) for name in ("name", "python", "framework", "version", "python_version")}
    return Runtime(**texts, settings=Settings(threads, environment, limit))
