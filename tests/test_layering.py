import ast
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import grimp
import pytest
from importlinter.cli import lint_imports

from dlbricks_tui.runtime.traits import Format

ROOT = Path(__file__).parent.parent
INTERFACES = {"cli", "tui"}
INTERFACE_MODULES = sorted(path for name in INTERFACES for path in (ROOT / "dlbricks_tui" / name).rglob("*.py"))
TOP_LEVEL = """.ci .gitignore CHANGELOG.md LICENSE Makefile README.md benchmarks dlbricks_tui docs mkdocs.yml
    pyproject.toml sample_models tests themes"""
PACKAGES = sorted(folder.parent.name for folder in (ROOT / "dlbricks_tui").glob("*/__init__.py"))


def loaded_by(code: str) -> set[str]:
    """The top-level packages that a fresh interpreter has loaded after the code."""
    report = "import json, sys; print(); print(json.dumps([name.partition('.')[0] for name in sys.modules]))"
    run = subprocess.run(
        [sys.executable, "-c", f"{code}\n{report}"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(json.loads(run.stdout.splitlines()[-1]))


def test_every_import_obeys_the_contracts_between_packages(capsys: pytest.CaptureFixture[str]) -> None:
    status = lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True, no_logo=True)
    assert status == 0, capsys.readouterr().out


# What a door shows comes from these rooms. The engine rooms answer through `api` only.
OF_DOORS = "api documents settings config wording"
RENDERERS = {"cli": "report"}


def test_the_doors_ask_only_the_api() -> None:
    graph = grimp.build_graph("dlbricks_tui", exclude_type_checking_imports=True, cache_dir=None)
    rooms = {f"dlbricks_tui.{name}" for name in PACKAGES}
    for door in ("cli", "tui"):
        allowed = {f"dlbricks_tui.{name}" for name in (door, RENDERERS.get(door, door), *OF_DOORS.split())}
        for module in graph.find_descendants(f"dlbricks_tui.{door}"):
            found = {".".join(it.split(".")[:2]) for it in graph.find_modules_directly_imported_by(module)}
            assert found & rooms <= allowed, module
    for path in INTERFACE_MODULES:
        opened = re.search(r"import .*\b(open_store|open_estimator|ModelLoaders|ResultsDatabase)\b", path.read_text())
        assert opened is None, f"{path}: a session opens it"


def test_only_known_files_and_folders_are_committed_at_the_top() -> None:
    git = shutil.which("git")
    listed = (
        git and subprocess.run([git, "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    )
    if not listed:
        pytest.skip("needs git and a clone of the project")
    found = {name.partition("/")[0] for name in listed.split("\0") if name}
    assert found <= set(TOP_LEVEL.split()), "add it to TOP_LEVEL, or remove it from the project"


def test_help_loads_no_slow_modules() -> None:
    loaded = loaded_by(
        "import contextlib\n"
        "from dlbricks_tui.cli.main import main\n"
        "for arguments in (['--help'], ['--version'], []):\n"
        "    with contextlib.suppress(SystemExit): main(arguments)"
    )
    assert "dlbricks_tui" in loaded
    assert loaded.isdisjoint({"rich", "textual", "networkx", "numpy", "tinydb", "mxnet", "asyncio"})


def test_looking_at_fleet_runs_loads_nothing_that_reaches_hosts(tmp_path: Path) -> None:
    estimate = ["estimate", "squeezenet1.1", "--level", "written", "--measured-only"]
    commands = (["fleet", "run", "--help"], ["fleet", "status"], ["fleet", "list"], estimate)
    loaded = loaded_by(
        "import contextlib\n"
        "from pathlib import Path\n"
        "from dlbricks_tui.cli.main import main\n"
        "from dlbricks_tui.folders import DataFolder\n"
        "from tests.fleet.sample_fleet import sample_fleet\n"
        f"sample_fleet(DataFolder(Path({str(tmp_path)!r})))\n"
        f"for arguments in {commands}:\n"
        f"    with contextlib.suppress(SystemExit): main(['--data-dir', {str(tmp_path)!r}, *arguments])\n"
    )
    assert {"dlbricks_tui", "rich"} <= loaded, "the tables were drawn"
    assert loaded.isdisjoint({"distributed", "dask", "asyncssh", "cryptography"})
    assert "plotext" not in loaded, "tables need no plots"


def test_a_package_loads_no_interface_no_framework_and_no_terminal_library() -> None:
    # What one package loads stays loaded: one interpreter for all finds no less than one for each.
    packages = [package for package in PACKAGES if package not in INTERFACES]
    assert len(packages) > 10
    loaded = loaded_by(
        "import importlib, pkgutil, sys\n"
        # rich measures the cells of texts; it draws in the interfaces only.
        "unwanted = ('rich.console', 'rich.text', 'rich.table', 'textual', 'plotext', 'mxnet', 'onnxruntime',\n"
        "    'perfetto', 'sample_models', 'dlbricks_tui.cli', 'dlbricks_tui.tui')\n"
        f"for name in {packages}:\n"
        "    package = importlib.import_module('dlbricks_tui.' + name)\n"
        "    for module in pkgutil.walk_packages(package.__path__, package.__name__ + '.'):\n"
        "        if not module.name.startswith('dlbricks_tui.runtime.inside'):\n"
        "            importlib.import_module(module.name)\n"
        "    found = [it for it in sys.modules if (it + '.').startswith(tuple(name + '.' for name in unwanted))]\n"
        "    sys.exit(f'{name} loads {found}') if found else None"
    )
    assert "dlbricks_tui" in loaded


def test_the_interfaces_do_not_depend_on_a_model_format() -> None:
    """A model is a model, a runtime is a runtime: a third format needs nothing here."""
    forms = [form.name.lower() for form in Format]
    assert len(INTERFACE_MODULES) > 50
    for path in INTERFACE_MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                named = [node.module or "", *(alias.name for alias in node.names)]
            elif isinstance(node, ast.Import):
                named = [alias.name for alias in node.names]
            else:
                is_member = (
                    isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Format"
                )
                named = [node.attr] if isinstance(node, ast.Attribute) and is_member else []
            assert not any(form in name.lower() for name in named for form in forms), (path, ast.unparse(node))


def test_a_class_is_known_by_its_name_alone() -> None:
    places: dict[str, list[str]] = {}
    for path in sorted((ROOT / "dlbricks_tui").rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert {name: held for name, held in places.items() if len(held) > 1} == {}
