"""Where results come from, as records of the store: versions, the host at the time, and the files of the models."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from dlbricks_tui import __version__
from dlbricks_tui.errors import UserError
from dlbricks_tui.host.fingerprint import host_facts
from dlbricks_tui.models.content import content_sha256
from dlbricks_tui.runtime.protocol import Described
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import Facts, Provenance, System, utc_now


def provenance(
    run: str,
    system: System,
    runtime: Runtime,
    described: Described,
    models: Facts,
    *,
    protocol: str = "",
    evaluation: str = "",
    unmet: tuple[str, ...] = (),
) -> Provenance:
    """Return where the results come from that a worker of a runtime measures now; `models` are `model_digests`."""
    return Provenance(
        when=utc_now(),
        run=run,
        system=system.id,
        runtime=runtime.identity,
        protocol=protocol,
        packages=(("dlbricks", __version__), *described.packages.items()),
        host=host_facts(system),
        models=models,
        evaluation=evaluation,
        unmet=unmet,
    )


def keep_provenance(store: ResultsDatabase, found: Provenance) -> None:
    """Store where results come from, unless the store says the same of the run already."""
    known = store.provenance_of(found.run, found.runtime)
    if known is None or replace(known, when=found.when, uuid=found.uuid) != found:
        store.add(found)


def model_digests(files: Iterable[tuple[str, Path]]) -> Facts:
    """Return the SHA-256 of model files by the keys of the models; a file that has gone meanwhile is left out."""
    found: dict[str, str] = {}
    for key, path in files:
        # Models of equal layers have one key: the first file stands for them.
        if key not in found:
            try:
                found[key] = content_sha256(path)
            except UserError:
                continue
    return tuple(found.items())
