import os
import platform
import sys
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from types import ModuleType

import pytest

from dlbricks_tui.recorded_host import Processors, processors_here
from dlbricks_tui.runtime.errors import FrameworkMissingError, RegistryError
from dlbricks_tui.runtime.inside.answering import packages_of
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime, Settings
from dlbricks_tui.runtime.traits import ONNX_RUNTIME, OPENVINO, TRAITS, Format
from tests.runtime.fake_worker import DESCRIBED

# Runs a program, whose path follows, in an interpreter that imports no framework.
_WITHOUT_FRAMEWORKS = """
import runpy, sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name in ('mxnet', 'onnxruntime', 'openvino'):
            raise ImportError('hidden')
sys.meta_path.insert(0, Hidden())
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name='__main__')
"""
FAKE_WORKER = Path(__file__).with_name("fake_worker.py")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def registry(folder: Path) -> Registry:
    return Registry(folder)


def program(path: Path, script: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def only(monkeypatch: pytest.MonkeyPatch, *packages: str) -> None:
    """List only these packages as installed."""
    known = metadata.version

    def version(name: str) -> str:
        if name not in packages:
            raise metadata.PackageNotFoundError(name)
        return known(name)

    monkeypatch.setattr(metadata, "version", version)


@pytest.fixture
def fake_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return an interpreter that is not started: what the fake worker would answer is known."""
    monkeypatch.setattr(Registry, "_describe", lambda *_: DESCRIBED)
    return program(tmp_path / "env" / "bin" / "python", "exit 1")


def test_the_registry_stores_what_the_interpreter_reports(registry: Registry, tmp_path: Path) -> None:
    fake_python = program(tmp_path / "python", f'shift; exec "{sys.executable}" "{FAKE_WORKER}" "$@"')
    settings = Settings(2, (("MXNET_SUBGRAPH_BACKEND", "NONE"),))
    added = registry.add(fake_python, settings=settings)
    assert added == Runtime("mxnet-1.0-py3.7", fake_python, "mxnet", "1.0", "3.7.16", settings)
    assert registry.find(added.name) == added
    names = [runtime.name for runtime in registry.all()]
    assert (names[:2], names[-1]) == (["default", "default-onnx"], "mxnet-1.0-py3.7")


def test_a_virtual_environment_selects_its_interpreter_and_a_link_is_kept_unresolved(
    registry: Registry, fake_python: str, tmp_path: Path
) -> None:
    assert registry.add(str(Path(fake_python).parents[1]), name="old").python == fake_python
    link = tmp_path / "python"
    link.symlink_to(fake_python)
    assert registry.add(str(link)).python == str(link)


def test_an_interpreter_without_the_framework_is_refused(registry: Registry, tmp_path: Path, folder: Path) -> None:
    bare = program(tmp_path / "bare", f'exec "{sys.executable}" -I -S "$@"')
    with pytest.raises(FrameworkMissingError, match="No module named 'numpy'"):
        registry.add(bare)
    assert not (folder / "runtimes.json").exists()


def test_programs_that_are_missing_or_no_interpreters_are_refused(registry: Registry, tmp_path: Path) -> None:
    for path in ("/no/such/python", __file__, str(tmp_path)):
        with pytest.raises(RegistryError, match="is not a program"):
            registry.add(path)
    with pytest.raises(RegistryError, match=r"ended with status 3: I am no Python; .* version 3\.7 or newer"):
        registry.add(program(tmp_path / "other", "echo I am no Python; exit 3"))


def test_a_runtime_name_is_unique(registry: Registry, fake_python: str) -> None:
    registry.add(fake_python, name="old")
    for name in ("old", "default"):
        with pytest.raises(RegistryError, match=f"a runtime called {name} already"):
            registry.add(fake_python, name=name)
    with pytest.raises(RegistryError, match="is not a valid name"):
        registry.add(fake_python, name="../old")


def test_a_check_finds_a_new_version(registry: Registry, folder: Path, fake_python: str) -> None:
    added = registry.add(fake_python, name="old")
    file = folder / "runtimes.json"
    file.write_text(file.read_text().replace('"version": "1.0"', '"version": "0.9"'))
    assert registry.find("old").version == "0.9"
    assert registry.check("old") == added
    assert registry.find("old") == added


def test_a_removed_runtime_is_forgotten_and_the_default_one_stays(registry: Registry, fake_python: str) -> None:
    registry.add(fake_python, name="old")
    registry.remove("old")
    with pytest.raises(RegistryError, match="no runtime is called old; there are default"):
        registry.find("old")
    with pytest.raises(RegistryError, match="cannot be removed"):
        registry.remove("default")


def test_the_default_runtime_is_this_interpreter_with_the_settings_of_the_shell(registry: Registry) -> None:
    runtime = registry.default({"OMP_NUM_THREADS": "3"})
    assert (runtime.name, runtime.python, runtime.settings) == ("default", sys.executable, Settings(3))


def test_runtimes_without_a_setting_have_the_number_of_threads_of_the_host(
    folder: Path, fake_python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next host that reads the folder may have other processors."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    for number in (8, 2):
        here = Processors(number, "x86_64", hyper_threading=False)
        monkeypatch.setattr("dlbricks_tui.runtime.registry.processors_here", lambda here=here: here)
        registry = Registry(folder)
        added = registry.add(fake_python, name=f"on-{number}")
        assert added == registry.find(added.name)
        found = {it.name: it.settings.threads for it in registry.known()}
        usual = {it.own_runtime: it.usual_threads(here) for it in TRAITS.values()}
        assert found == {**usual, **{name: number // 2 for name in found if name.startswith("on-")}}


@pytest.mark.parametrize(("usable", "threads"), [({0, 1}, 2), ({0, 2}, 1), ({0, 1, 2, 3}, 2)])
def test_a_process_bound_to_cores_of_a_hyper_threading_host_has_a_thread_for_each_of_its_cores(
    tmp_path: Path, usable: set[int], threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for processor, siblings in enumerate(("0,2", "1,3", "0,2", "1,3")):
        folder = tmp_path / f"cpu{processor}" / "topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(f"{siblings}\n")
    (tmp_path / "smt").mkdir()
    (tmp_path / "smt" / "active").write_text("1\n")
    monkeypatch.setattr("dlbricks_tui.recorded_host._CPU", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: usable, raising=False)
    assert ONNX_RUNTIME.usual_threads(processors_here()) == threads


def test_a_container_has_no_more_threads_than_cores_whose_time_it_has(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr("dlbricks_tui.recorded_host.quota_cores", lambda _: 3.9)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(1000, 1064)), raising=False)
    assert {it.settings.threads for it in Registry(folder).known()} == {3}


def test_each_host_of_a_fleet_decides_about_threads_that_were_not_registered(
    registry: Registry, fake_python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    fixed, free = (registry.add(fake_python, name=f"r{it}", settings=Settings(it)) for it in (3, None))
    assert [registry.as_registered(it).settings.threads for it in (fixed, free, registry.default())] == [3, None, None]
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert registry.as_registered(registry.default()).settings.threads == 5


def test_the_default_runtime_keeps_its_identity_when_its_framework_is_gone(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata, "version", lambda _: "1.7.0.post2")
    before = registry.default()
    assert before.version == "1.7.0"
    only(monkeypatch)
    assert registry.default() == before


def test_models_of_each_format_have_a_default_runtime(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    assert registry.runtime_for({Format.MXNET}) == registry.runtime_for() == registry.default()
    assert registry.runtime_for(tuple(Format)) == registry.default()
    assert registry.runtime_for({Format.ONNX}).name == "default-onnx"
    assert {form: it.traits.format for form, it in registry.one_of_each_format().items()} == {
        form: form for form in Format
    }
    with pytest.raises(RegistryError, match="choose models of one format"):
        registry.runtime_for(())
    only(monkeypatch)
    with pytest.raises(
        RegistryError, match=r"no runtime here runs ONNX models: pip install onnxruntime.*`dlbricks runtimes add PATH`$"
    ):
        registry.runtime_for({Format.ONNX})


def test_the_name_of_a_framework_stands_for_its_first_runtime(
    registry: Registry, fake_python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = registry.add(fake_python, name="first")
    monkeypatch.setattr(metadata, "version", lambda _: "1.9.1")
    assert registry.find("mxnet") == registry.default()
    assert registry.find("onnxruntime").name == "default-onnx"
    only(monkeypatch)
    assert registry.find("mxnet") == first
    with pytest.raises(
        RegistryError, match=r"no runtime here has ONNX Runtime: pip install onnxruntime.*`dlbricks runtimes add PATH`;"
    ):
        registry.find("onnxruntime")
    registry.remove("mxnet")
    assert registry.find("mxnet") == registry.default()


@pytest.mark.openvino
def test_where_only_the_other_framework_is_installed_it_is_taken(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    only(monkeypatch, "openvino")
    assert registry.runtime_for({Format.ONNX}).traits is OPENVINO


def test_a_framework_that_runs_one_operator_at_a_time_is_not_registered_for_more(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    described = replace(DESCRIBED, framework=OPENVINO.framework)
    monkeypatch.setattr(Registry, "_describe", lambda *_: described)
    with pytest.raises(RegistryError, match="OpenVINO runs the operators of a model one after another"):
        registry.add(sys.executable, "ov", framework=OPENVINO.framework, at_once=2)


def test_an_interpreter_with_several_frameworks_is_registered_for_the_named_one(registry: Registry) -> None:
    added = registry.add(sys.executable, "mine", framework="onnxruntime")
    assert (added.name, added.framework, added.traits) == ("mine", "onnxruntime", ONNX_RUNTIME)


@pytest.mark.usefixtures("without_mxnet")
def test_a_missing_mxnet_is_chosen_for_no_run_and_keeps_its_results(registry: Registry) -> None:
    mxnet = registry.default()
    assert registry.all()[0].name == "default-onnx"
    assert registry.runtime_for(tuple(Format)).name == "default-onnx"
    assert registry.preferred_format is Format.ONNX
    with pytest.raises(RegistryError, match="no runtime here runs MXNet models: pip install mxnet, on Python"):
        registry.runtime_for({Format.MXNET})
    with pytest.raises(
        RegistryError, match=r"runtime default is MXNet in .* none: pip install mxnet.* `dlbricks runtimes add PATH`$"
    ):
        registry.find_installed("default")
    assert registry.find("default") == registry.find("mxnet") == registry.one_of_each_format()[Format.MXNET] == mxnet
    assert registry.find_installed("default-onnx") == registry.find("default-onnx")


def test_an_interpreter_without_any_framework_is_refused_with_all_reasons(registry: Registry, tmp_path: Path) -> None:
    bare = program(tmp_path / "bare", f'exec "{sys.executable}" -c "{_WITHOUT_FRAMEWORKS}" "$@"')
    with pytest.raises(FrameworkMissingError) as refused:
        registry.add(bare)
    assert str(refused.value) == (
        f"{bare}: MXNet cannot be imported: hidden; ONNX Runtime cannot be imported: hidden; OpenVINO cannot be "
        "imported: hidden; install one of them there: pip install openvino, or pip install onnxruntime, or pip install "
        "mxnet, on Python 3.12 or older"
    )


@pytest.mark.parametrize(
    "content",
    ["", "[]", '{"runtimes": 1}', '{"runtimes": [{}]}', '{"runtimes": [{"settings": {"threads": "2"}}]}', "\x00"],
)
def test_an_invalid_list_of_runtimes_is_named_and_unchanged(registry: Registry, folder: Path, content: str) -> None:
    file = folder / "runtimes.json"
    folder.mkdir()
    file.write_text(content)
    with pytest.raises(RegistryError, match=rf"{file} is not a list of runtimes: .*; repair or delete it"):
        registry.all()
    assert file.read_text() == content


def module(name: str, **attributes: object) -> ModuleType:
    found = ModuleType(name)
    vars(found).update(attributes)
    return found


@pytest.mark.parametrize(
    ("framework", "version", "build", "expected"),
    [
        (
            "onnxruntime",
            "1.32.0",
            "ORT Build Info: git-branch=HEAD, git-commit-id=fab30a4, build type=Release",
            "fab30a4",
        ),
        ("onnxruntime", "1.9.0", None, None),
        ("openvino", "2026.4.1-22982-e213a147257-releases/2026/4", None, None),
    ],
)
def test_packages_have_their_versions_and_onnx_runtime_the_commit_that_it_was_built_from(
    framework: str, version: str, build: str | None, expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "numpy", module("numpy", __version__="1.26.4"))
    told = {} if build is None else {"get_build_info": lambda: build}
    monkeypatch.setitem(sys.modules, framework, module(framework, __version__=version, **told))
    built = {} if expected is None else {"onnxruntime_build": expected}
    always = {"python": platform.python_version(), framework: version, "numpy": "1.26.4"}
    assert packages_of(framework) == always | built
