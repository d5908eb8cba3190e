"""The results of dlbricks: a TinyDB database that loses nothing, with queries, export and import.

from dlbricks_tui.store import open_results

with open_results() as results:
    print(len(results.table("measurements")))
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dlbricks_tui.store.database import open_results as open_results
else:

    def __getattr__(name: str) -> object:
        # Modules that need records or statistics only do without TinyDB.
        if name != "open_results":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from dlbricks_tui.store.database import open_results

        return open_results
