"""The user's store as the commands about results open it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dlbricks_tui.cli.output import narrate
from dlbricks_tui.wording.numbers import counted

if TYPE_CHECKING:
    from dlbricks_tui.store.store import Store


@contextmanager
def open_store(args: argparse.Namespace) -> Iterator[Store]:
    """The user's store; what of it is damaged is said when all else is done."""
    from dlbricks_tui.store.store import Store

    with Store(args.data.store) as store:
        yield store
        if store.damage:
            count = len(store.damage)
            verb, more = ("is", "") if count == 1 else ("are", ", the first of which is")
            narrate(
                f"{counted(count, 'damaged line')} of the store {verb} set aside{more}: {store.damage[0]}; "
                "`dlbricks results verify` reads everything"
            )
