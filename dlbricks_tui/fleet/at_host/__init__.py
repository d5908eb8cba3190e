"""The host's side of a fleet: plain functions that the driver calls from afar. Their texts are JSON."""

from dlbricks_tui.fleet.at_host.controlling import control
from dlbricks_tui.fleet.at_host.measuring import carry_out
from dlbricks_tui.fleet.at_host.receiving import missing, take
from dlbricks_tui.fleet.at_host.reporting import report

__all__ = ["carry_out", "control", "missing", "report", "take"]
