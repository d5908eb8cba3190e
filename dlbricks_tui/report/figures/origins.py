"""The versions and the state of each host behind the results of a report."""

from collections.abc import Iterator, Mapping, Sequence

from dlbricks_tui.answers.analyses import Cell
from dlbricks_tui.report.exhibits import Exhibit, Section, csv_table
from dlbricks_tui.runtime.traits import TRAITS
from dlbricks_tui.store.records import Fact, Provenance
from dlbricks_tui.wording.numbers import counted

_NAME = "origins"
_PACKAGES = ("dlbricks", "python", "numpy", "onednn")
_HOST = ("kernel", "os", "container", "governor", "turbo", "microcode", "cpu")
_DETAILS = ("numpy", "container", "microcode", "cpu", "last_run")


def origins_section(origins: Sequence[Provenance]) -> Iterator[Section]:
    """Yield the section of where results come from; none if no run has recorded it."""
    if not origins:
        return
    found: dict[object, list[Provenance]] = {}
    for it in sorted(origins, key=lambda each: (each.system, each.runtime, each.when)):
        found.setdefault((it.system, it.runtime, it.packages, it.host), []).append(it)
    columns = ("system", "runtime", "framework", *_PACKAGES, *_HOST, "runs", "last_run")
    rows = [_row(alike) for alike in found.values()]
    caption = f"{counted(len(rows), 'combination')} of versions and state of the host."
    exhibit = Exhibit(f"table-{_NAME}", "Versions and hosts", caption, csv_table(columns, rows, _DETAILS))
    yield Section(
        "Versions: where the results come from",
        _NAME,
        "Each combination of versions, kernel and settings of the host under which runs measured the results.",
        (exhibit,),
    )


def _row(alike: Sequence[Provenance]) -> tuple[Cell, ...]:
    """Return the row of runs with equal versions on equal hosts."""
    newest = alike[-1]
    packages, host = dict(newest.packages), dict(newest.host)
    framework = next((f"{TRAITS[name].title} {packages[name]}" for name in TRAITS if name in packages), None)
    return (
        *(newest.system, newest.runtime, framework),
        *(_cell(packages, name) for name in _PACKAGES),
        *(_cell(host, name) for name in _HOST),
        *(len({it.run for it in alike}), newest.when),
    )


def _cell(facts: Mapping[str, Fact], name: str) -> Cell:
    value = facts.get(name)
    return ("yes" if value else "no") if isinstance(value, bool) else value
