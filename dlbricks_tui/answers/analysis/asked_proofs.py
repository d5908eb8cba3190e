"""The choice of what-ifs to prove."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from dlbricks_tui.analysis.what_if import WhatIf, WhatIfKind
from dlbricks_tui.answers.analysis.analysing import Analysis
from dlbricks_tui.errors import UserError
from dlbricks_tui.host.fingerprint import fingerprint
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
