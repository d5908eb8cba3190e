"""Where a result comes from, in words."""

from typing import NamedTuple

from dlbricks_tui.store.records import Facts, Provenance


class NamedLine(NamedTuple):
    """A line with its name, such as `versions`."""

    name: str
    text: str


def provenance_lines(found: Provenance, model: str = "") -> list[NamedLine]:
    """Return where a result comes from; `model` is the key of the model, if a whole one was timed."""
    lines = [NamedLine("versions", _listed(found.packages)), NamedLine("host", _listed(found.host))]
    digest = dict(found.models).get(model)
    if digest is not None:
        lines.append(NamedLine("model file", f"SHA-256 {digest}"))
    if found.evaluation:
        lines.append(NamedLine("evaluation", found.evaluation))
    if found.unmet:
        lines.append(NamedLine("not met", "; ".join(found.unmet)))
    return lines


def _listed(facts: Facts) -> str:
    words = {True: "on", False: "off", None: "unknown"}
    told = ((name, words[it] if it is None or isinstance(it, bool) else it) for name, it in facts)
    return ", ".join(f"{name} {it}" for name, it in told)
