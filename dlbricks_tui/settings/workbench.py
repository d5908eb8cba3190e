"""The settings of the workbench."""

from enum import Enum

from dlbricks_tui.settings.setting import Setting, name, one_of


class Switch(str, Enum):
    """On, off, or `auto`, which lets the connection decide."""

    AUTO = "auto"
    ON = "on"
    OFF = "off"


THEME = Setting(
    name="theme",
    kind=name("the name of a theme"),
    about="the theme of the workbench",
    default="dark",
    config="workbench.theme",
)
MOUSE = Setting(
    name="mouse",
    kind=one_of(*Switch),
    about="use the mouse in the workbench; auto: unless the connection is remote. A change takes effect at the next "
    "start",
    default=Switch.AUTO,
    config="workbench.mouse",
)
REMOTE = Setting(
    name="remote",
    kind=one_of(*Switch),
    about="draw less, for slow connections; auto: if SSH_TTY or SSH_CONNECTION is set. A change takes effect at the "
    "next start",
    default=Switch.AUTO,
    config="workbench.remote",
)
PREDICTIONS = Setting(
    name="predictions",
    kind=one_of(Switch.ON, Switch.OFF),
    about="predict the latencies of bricks that were not measured, unless --measured-only is given",
    meaning="of bricks that were not measured",
    default=Switch.ON,
    config="estimate.predictions",
)
