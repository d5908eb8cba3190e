"""All questions: one function for each, and the classes of their answers, for commands, screens and Python users.

    from dlbricks_tui import api

    run = api.measure("squeezenet1.1")
    print(run.models[0].sequential_ms)

The names in `public.__all__` are stable, and known here. All other modules may change from one version to the next.
"""

# In place of typing's: to load that module takes time in which SIGINT shows a traceback.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from dlbricks_tui.api.public import *  # noqa: F403
else:

    def __getattr__(name: str) -> object:
        from importlib import import_module
        from importlib.util import find_spec

        # A command needs one of these modules, which is imported then, and not what all names load.
        if name != "__all__" and (name.startswith("_") or find_spec(f"{__name__}.{name}") is not None):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.public"), name)

    def __dir__() -> list[str]:
        # Notebooks complete names by it.
        return list(__getattr__("__all__"))
