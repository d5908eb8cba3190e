"""Benchmark deep-learning models by their unique layer sequences; `dlbricks_tui.api` is the public API."""

__version__ = "0.2.0"

# In place of typing's: to load that module takes time in which SIGINT shows a traceback.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from dlbricks_tui import api as api
else:

    def __getattr__(name: str) -> object:
        # The commands need little of what the API loads.
        if name != "api":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return import_module(f"{__name__}.api")


def __dir__() -> list[str]:
    return ["__version__", "api"]
