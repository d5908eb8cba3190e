"""Names of what-ifs in plain words."""

from dlbricks_tui.analysis.what_if import WhatIfKind
from dlbricks_tui.runtime.traits import TRAITS
from dlbricks_tui.runtime.variant import Optimisation, threads_in_words

_BY_ID = {
    "runtime-mix": "mix the fastest runtimes",
    "runtime-default-engine": "use the default engine",
    "kernels-default": "use all kernels",
    "fusion": "fuse more layers",
    "fusion-off": "fuse no layers",
}
_OPTIMISATIONS = {it.value for it in Optimisation}


def what_if_words(what_if: str) -> str:
    """Return a what-if, given its id, in plain words: `parallel-2` is `run 2 branches at once`."""
    kind, _, name = what_if.partition("-")
    words = {
        WhatIfKind.PARALLEL: f"run {name} branches at once",
        WhatIfKind.RUNTIME: f"run it in {TRAITS[name].title}" if name in TRAITS else "",
        WhatIfKind.KERNELS: f"optimise less: {name}" if name in _OPTIMISATIONS else f"use {name} kernels",
        WhatIfKind.PRECISION: f"compute in {name}",
        WhatIfKind.THREADS: f"use {threads_in_words(int(name))}" if name.isdecimal() else "",
        WhatIfKind.BATCH: f"use batches of {name}",
    }
    return _BY_ID.get(what_if) or next((it for each, it in words.items() if each.value == kind), "") or what_if
