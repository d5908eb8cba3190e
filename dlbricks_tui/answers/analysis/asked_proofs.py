"""The choice of what-ifs to prove, and their proofs in this process."""

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

from dlbricks_tui.analysis.jobs import PROOF, ProofDone, ProofOrder, carry_out_proofs
from dlbricks_tui.analysis.what_if import WhatIf, WhatIfKind
from dlbricks_tui.answers.analysis.analysing import Analysis
from dlbricks_tui.errors import UserError
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.jobs.folder import JobState
from dlbricks_tui.jobs.process import work_on
from dlbricks_tui.wording.numbers import names_of

ALL = "all"


class ProvingError(UserError):
    """There is no what-if of that id, or its model was analysed on another system."""


def refuse_other_system(found: Sequence[Analysis]) -> None:
    """Raise ProvingError if a model was analysed on another system than this host."""
    here = fingerprint().id
    for each in found:
        if each.system != here:
            raise ProvingError(
                f"{each.source.name} was analysed on another system, and models run on this host: leave out --system"
            )


class AskedProofs(NamedTuple):
    """The what-ifs of a model that are to be proved, and the ids that it does not have."""

    found: Analysis
    what_ifs: tuple[WhatIf, ...]
    unknown: tuple[str, ...]


def asked_what_ifs(
    found: Sequence[Analysis], ids: Collection[str], kinds: Collection[WhatIfKind]
) -> tuple[AskedProofs, ...]:
    """Return the what-ifs with these ids, or with `all` those that can be run; refuse an id that no model has."""
    asked = tuple([_asked(each, tuple(dict.fromkeys(ids)), kinds) for each in found])
    missing = set.intersection(*(set(each.unknown) for each in asked)) if asked else set()
    for each in (it for it in ids if it in missing):
        provable = (it for one in found for it in one.what_ifs if it.kind in kinds and it.change is not None)
        known = dict.fromkeys(it.id for it in provable)
        there = f"there are {', '.join(known)}" if known else "there are none: --measure measures what they lack"
        models = names_of(list(dict.fromkeys(it.source.name for it in found)))
        raise ProvingError(f"no what-if {each[:60]!r} of {models}; {there}")
    if not any(each.what_ifs for each in asked):
        raise ProvingError("there is no what-if to prove: --measure measures what they lack")
    return asked


def _asked(found: Analysis, ids: Sequence[str], kinds: Collection[WhatIfKind]) -> AskedProofs:
    known = {it.id: it for it in found.what_ifs if it.kind in kinds}
    if ALL in ids:
        return AskedProofs(found, tuple(it for it in known.values() if it.change is not None), ())
    return AskedProofs(
        found, tuple(known[each] for each in ids if each in known), tuple(it for it in ids if it not in known)
    )


class EndedProofs(NamedTuple):
    """The end of a job that proves what-ifs, and the numbers of those that it has proved, and that failed."""

    state: JobState
    proved: int
    failed: int


def proof_order(asked: AskedProofs, inputs: dict[str, Any]) -> ProofOrder:
    """Return the order to prove the what-ifs of a model; `inputs` are the fields of InputOptions."""
    return ProofOrder(asked.found.source, asked.what_ifs, **inputs)


def prove_here(order: ProofOrder, data: DataFolder, take: Callable[[Event], None]) -> EndedProofs:
    """Prove what-ifs in this process; what is finished is kept if it is interrupted."""
    ended: list[ProofDone] = []

    def keep(event: Event) -> None:
        if isinstance(event, ProofDone):
            ended.append(event)
        take(event)

    job = PROOF.create(data, (order.source.name,), order)
    work_on(PROOF, job, data, carry_out_proofs, keep)
    proved = sum(it.gain is not None for it in ended)
    return EndedProofs(job.state(), proved, len(ended) - proved)
