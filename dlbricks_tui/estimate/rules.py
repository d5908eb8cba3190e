"""The user's rules for parallel layers: which may run in parallel, how many, and how much they slow each other down."""

import math
import sys
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from dlbricks_tui import files
from dlbricks_tui.estimate.compositions import FREELY, Sharing
from dlbricks_tui.estimate.errors import EstimateError
from dlbricks_tui.models.graph import Layer
from dlbricks_tui.models.kinds import Kind

_WHAT = "rules file"
_TABLE = "rule"
_PATTERNS = ("ops", "kinds", "names")
_KEYS = (*_PATTERNS, "parallel", "at_most", "slowdown")
# Larger than any real slowdown. Without a limit latencies could overflow.
_MOST_SLOWDOWN = 1_000_000


class Rule(NamedTuple):
    """Patterns of layers, and how these share the machine; an empty pattern list matches all layers."""

    sharing: Sharing
    ops: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    def covers(self, layer: Layer) -> bool:
        """True if a layer matches all pattern lists."""
        return all(
            not patterns or any(fnmatchcase(text, pattern) for text in texts for pattern in patterns)
            for texts, patterns in (
                # Users know fused operators by the operators inside.
                ((layer.op, *(op for it in layer.operators for op in (it.op, *it.parts))), self.ops),
                ((layer.kind.value,), self.kinds),
                ((layer.name,), self.names),
            )
        )


class Rules(NamedTuple):
    """The rules of a file in order; the first one that covers a layer counts."""

    rules: tuple[Rule, ...] = ()

    def sharing_of(self, layers: Sequence[Layer]) -> Sharing:
        """Return how a sequence shares the machine: as the strictest of its layers."""
        if not self.rules:
            return FREELY
        found = {next((rule.sharing for rule in self.rules if rule.covers(layer)), FREELY) for layer in layers}
        limited = min(found, key=lambda sharing: (sharing.at_most or math.inf, sharing.label), default=FREELY)
        return Sharing(
            parallel=all(sharing.parallel for sharing in found),
            at_most=limited.at_most,
            slowdown=max((sharing.slowdown for sharing in found), default=FREELY.slowdown),
            label=limited.label,
        )


NO_RULES = Rules()


def read_rules(path: Path) -> Rules:
    return parse_rules(read_text(path, _WHAT), f"{_WHAT} {path}")


def parse_rules(text: str, where: str) -> Rules:
    """Return the rules in a TOML text; `where` names the text in error messages."""
    document = parse_toml(text, where)
    tables = document.pop(_TABLE, [])
    if document:
        raise EstimateError(f"{where}: {next(iter(document))!r} means nothing here; write [[{_TABLE}]] tables")
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise EstimateError(f"{where}: each rule begins with [[{_TABLE}]], in two pairs of brackets")
    return Rules(tuple(_rule(table, f"{where}, rule {number}") for number, table in enumerate(tables, 1)))


def _rule(table: Mapping[str, Any], where: str) -> Rule:
    for key in table:
        if key not in _KEYS:
            raise EstimateError(f"{where}: {key!r} means nothing; a rule has {', '.join(_KEYS)}")
    parallel = table.get("parallel", True)
    if not isinstance(parallel, bool):
        raise EstimateError(f"{where}: parallel is true or false, not {parallel!r}")
    if not parallel and {"at_most", "slowdown"} & table.keys():
        raise EstimateError(f"{where}: what is not parallel shares with nothing; take out at_most and slowdown")
    at_most, slowdown = table.get("at_most"), table.get("slowdown", 1)
    if at_most is not None and (not isinstance(at_most, int) or isinstance(at_most, bool) or at_most < 1):
        raise EstimateError(f"{where}: at_most is a whole number, 1 or more, not {at_most!r}")
    if not isinstance(slowdown, int | float) or isinstance(slowdown, bool) or not 1 <= slowdown <= _MOST_SLOWDOWN:
        raise EstimateError(
            f"{where}: slowdown is a number from 1 to a million, by which a latency is multiplied, not {slowdown!r}"
        )
    patterns = {key: table.get(key, []) for key in _PATTERNS}
    for key, value in patterns.items():
        if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
            raise EstimateError(f'{where}: {key} is a list of patterns, such as ["conv*"], not {value!r}')
    for kind in patterns["kinds"]:
        if not any(fnmatchcase(known.value, kind) for known in Kind):
            raise EstimateError(f"{where}: no kind of layers is called {kind!r}; there are {', '.join(Kind)}")
    # Exactly the number as it is written: 1.3 is thirteen tenths.
    sharing = Sharing(parallel, at_most, Fraction(str(slowdown)), label=where)
    return Rule(sharing, *(tuple(patterns[key]) for key in _PATTERNS))


if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def read_text(path: Path, what: str) -> str:
    """Return the text of a file; `what` names the file in error messages."""
    try:
        return files.read_text(path)
    except OSError as error:
        raise EstimateError(f"{what} {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise EstimateError(f"{what} {path} is not UTF-8 text: {error.reason} at byte {error.start}") from None


def parse_toml(text: str, where: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise EstimateError(f"{where} is not TOML: {error}") from None
