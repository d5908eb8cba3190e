"""Opens the terminal UI and brings the terminal back, however that ends."""

from dlbricks_tui.settings import DataFolder


def open_workbench(data: DataFolder) -> int:
    """Runs the application until the person leaves, and returns the exit status."""
    from dlbricks_tui.tui.app import DlbricksApp
    from dlbricks_tui.tui.session import Session

    app = DlbricksApp(Session(data))
    app.run()
    if app.fault is not None:
        raise app.fault
    return app.return_code or 0
