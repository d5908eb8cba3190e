"""Names of models in little space: the common part of a family is shown once, and different names look different."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from os.path import commonprefix
from typing import NamedTuple

from rich.cells import cell_len, chop_cells

from dlbricks_tui.documents.lines import ELLIPSIS, cut
from dlbricks_tui.printable import printable

# From this width on different names look different.
LEAST_WIDTH = 10
FAMILY_INDENT = 2
# A shorter common part of names without blanks is not worth a row.
_LEAST_COMMON = 8
_ENDS = " ,-_/."


class NameRow(NamedTuple):
    """A row of a list of names: a name by its place, or the head of a family."""

    text: str
    # None: the head of a family.
    place: int | None
    in_family: bool = False


def shortened(name: str) -> str:
    """Return a name as one line, without the words that most names of Table 1 have."""
    model, trained, data = printable(name).partition(" Trained on ")
    return f"{model}, {data.removesuffix(' Data')}" if trained else model


def told_apart(names: Sequence[str], width: int) -> list[str]:
    """Return each name in at most `width` cells, so that different names differ from `LEAST_WIDTH` on.

    A name that is too long keeps its beginning and the part where it differs from the most similar one.
    """
    texts = {name: shortened(name) for name in names}
    ordered = sorted(set(texts.values()))
    # The number of characters that each text has in common with the most similar other one.
    common = [0, *(len(commonprefix(both)) for both in pairwise(ordered)), 0]  # noqa: RUF071 - no paths
    same = {text: max(common[at : at + 2]) for at, text in enumerate(ordered)}
    shown = {name: _elided(text, same[text], width) for name, text in texts.items()}
    times = Counter(shown.values())
    used = set(times)
    numbers: Counter[str] = Counter()
    for name, text in shown.items():
        if times[text] > 1:
            shown[name] = _numbered(text, width, used, numbers)
    return [shown[name] for name in names]


def longest(names: Iterable[str]) -> int:
    """Return the number of cells that show every name whole."""
    return max((cell_len(shortened(name)) for name in names), default=0)


def room_for(names: Sequence[str]) -> int:
    """Return the least width in which `family_rows` shows every name whole."""
    return max((_room_of(family) for family in _runs([shortened(it) for it in names])), default=0)


def _room_of(family: Sequence[str]) -> int:
    common, whole = _common_words(family), max(map(cell_len, family))
    if len(family) == 1 or len(set(family)) < len(family):
        return whole
    rests = [FAMILY_INDENT + cell_len(_rest(it, common)) for it in family]
    return min(whole, max(cell_len(_head(common)), *rests))


def family_rows(names: Sequence[str], width: int) -> list[NameRow]:
    """Return the names as rows of at most `width` cells.

    Neighbours that begin with the same words and do not fit have these words in a row of their own above them.
    """
    heads = _heads(names, width)
    tops = [name if head is None else _head(head) for name, head in zip(names, heads, strict=True)]
    shown_tops = told_apart(tops, width)
    shown: dict[int, str] = {}
    for common in {head for head in heads if head is not None}:
        members = [index for index, it in enumerate(heads) if it == common]
        rests = [_rest(shortened(names[index]), common) for index in members]
        shown |= dict(zip(members, told_apart(rests, width - FAMILY_INDENT), strict=True))
    rows: list[NameRow] = []
    for index, head in enumerate(heads):
        if head is None:
            rows.append(NameRow(shown_tops[index], index))
            continue
        if index == 0 or heads[index - 1] != head:
            rows.append(NameRow(shown_tops[index], None))
        rows.append(NameRow(shown[index], index, in_family=True))
    return rows


def _head(common: str) -> str:
    """Return the common words of a family as they are shown."""
    return f"{common.rstrip(_ENDS)} {ELLIPSIS}" if " " in common else f"{common}{ELLIPSIS}"


def _rest(text: str, common: str) -> str:
    return text[len(common) :].lstrip(_ENDS)


def _heads(names: Sequence[str], width: int) -> list[str | None]:
    """Return for each name the common words of its family; None for names without a family."""
    texts = [shortened(name) for name in names]
    heads: list[str | None] = []
    for family in _runs(texts):
        common = _common_words(family)
        fits = all(cell_len(text) <= width for text in family)
        # Members of a family have different rests.
        is_family = len(set(family)) == len(family) > 1 and not fits
        heads += [common if is_family else None] * len(family)
    return heads


def _runs(texts: Sequence[str]) -> Iterator[list[str]]:
    """Yield neighbours that begin with the same words."""
    run: list[str] = []
    for text in texts:
        if run and not _common_words([*run, text]):
            yield run
            run = []
        run.append(text)
    if run:
        yield run


def _common_words(texts: Sequence[str]) -> str:
    """Return the words that all texts begin with, of which none is a whole text; nothing if that is too little."""
    # With what follows each of them; without blanks the parts of a file name.
    words = [re.findall(r"[^ ]+ *| +" if " " in it else r"[^_\-./]+[_\-./]*|[_\-./]+", it) for it in texts]
    most = min(len(it) for it in words) - 1
    count = next((at for at in range(most) if len({it[at] for it in words}) > 1), most)
    common = "".join(words[0][: max(0, count)])
    return common if " " in common or len(common) >= _LEAST_COMMON else ""


def _elided(text: str, same: int, width: int) -> str:
    """Return a text in at most `width` cells with the place where it differs from others, after so many characters."""
    if cell_len(text) <= width or cell_len(text[: same + 1]) < width:
        return cut(text, width)
    # The word that differs, unless its beginning is too far away.
    begin = max(text.rfind(sign, 0, same) for sign in (" " if " " in text else _ENDS)) + 1
    if cell_len(text[begin : same + 1]) > width // 2:
        begin = max(0, min(same, len(text) - 1) - width // 4)
    rest = text[begin:]
    head = _beginning(text, max(width // 3, width - 1 - cell_len(rest))).rstrip(_ENDS)
    return f"{head}{ELLIPSIS}{cut(rest, width - 1 - cell_len(head))}"


def _numbered(text: str, width: int, used: set[str], numbers: Counter[str]) -> str:
    """Return the text with the first number that makes it different from all used ones."""
    while True:
        numbers[text] += 1
        sign = f"#{numbers[text]}"
        numbered = _beginning(text, width - len(sign)) + sign
        if numbered not in used:
            used.add(numbered)
            return numbered


def _beginning(text: str, width: int) -> str:
    return chop_cells(text, width)[0] if text and width > 0 else ""
