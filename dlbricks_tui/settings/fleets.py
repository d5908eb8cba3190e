"""The settings of a fleet run."""

from enum import Enum

from dlbricks_tui.settings.measuring import MOST_PROBE_SECONDS
from dlbricks_tui.settings.setting import Setting, number, one_of


class Question(str, Enum):
    """The question of a fleet run, which ends once it is answered."""

    # The latencies of all models on all hosts: every brick is measured everywhere.
    EVERYTHING = "everything"
    # The order of the hosts for each model.
    WHICH_HOST = "which-host"


QUESTION = Setting(
    name="question",
    kind=one_of(*Question),
    about="which-host: end once the order of the hosts is certain for every model",
    meaning="what to find out",
    default=Question.EVERYTHING,
    usual="everything",
)
PROBE = Setting(
    name="probe seconds",
    kind=number(MOST_PROBE_SECONDS, 10, 20, 60, sign="S"),
    about="time of the first measurements on each host, which tell most",
    meaning="on each host, first of all",
    default=20.0,
    usual="20",
)
