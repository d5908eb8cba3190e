"""Work of the systems screen that takes time; it runs it in a thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.answers.systems import known_systems
from dlbricks_tui.estimate.comparison import candidates, read_prices
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.host.noise import findings
from dlbricks_tui.store.selections import by_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dlbricks_tui.answers.scope import EstimateOptions
    from dlbricks_tui.answers.systems import KnownSystem
    from dlbricks_tui.estimate.comparison import Candidate
    from dlbricks_tui.host.noise import Finding
    from dlbricks_tui.store.records import RuntimeRecord
    from dlbricks_tui.tui.open_model import ModelSpec
    from dlbricks_tui.tui.session import Session


class Systems(NamedTuple):
    """This host and the systems of the store, and the runtimes by id."""

    known: tuple[KnownSystem, ...]
    runtimes: Mapping[str, RuntimeRecord]


def list_systems(session: Session) -> Systems:
    """Return this host and the systems of the store."""
    host, prices = fingerprint(), read_prices(session.data.path)
    with session.store.held() as store:
        store.refresh()
        return Systems(known_systems(store, prices, host), by_id(store.runtimes()))


def examine() -> tuple[Finding, ...]:
    """Return the sources of noise on this host."""
    return tuple(findings())


def rank(session: Session, spec: ModelSpec, options: EstimateOptions) -> tuple[Candidate, ...]:
    """Return the answers of a model on every system, the fastest first."""
    from dlbricks_tui.answers.estimating import Remarks, open_estimator

    prices, silent = read_prices(session.data.path), Remarks(lambda _: None, str, lambda *_: None)
    # A store of its own: reading models takes long, and other panels estimate meanwhile.
    with open_estimator(options, session.data, silent) as estimator:
        known = by_id(estimator.store.systems())
        found = estimator.on_systems([spec.source], list(known))
    return candidates(found[spec.source.name], known, prices)
