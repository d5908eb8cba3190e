"""Opens the terminal UI and brings the terminal back, however that ends."""

import os

from dlbricks_tui.config.reading import Sources
from dlbricks_tui.settings import DataFolder
from dlbricks_tui.tui.manners import manners


def open_workbench(data: DataFolder, sources: Sources) -> int:
    """Runs the application until the person leaves, and returns the exit status."""
    behaving = manners(sources.read(), sources.environment)
    # Textual reads this once, when it is imported.
    os.environ.setdefault("TEXTUAL_FPS", f"{behaving.repaints_per_second}")

    from dlbricks_tui.tui.app import DlbricksApp
    from dlbricks_tui.tui.job_control import let_go_of_what_is_hung_up
    from dlbricks_tui.tui.session import Session

    app = DlbricksApp(Session(data), sources=sources, manners=behaving)
    app.run(mouse=behaving.mouse)
    let_go_of_what_is_hung_up()
    if app.fault is not None:
        raise app.fault
    return app.return_code or 0
