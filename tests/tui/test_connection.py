"""Settings of remote connections, and copying over them."""

import base64
import re

import pytest

from dlbricks_tui.config.config import Config, Given
from dlbricks_tui.settings.workbench import Switch
from dlbricks_tui.tui.door import Connection, connection
from dlbricks_tui.tui.saving import clipboard_sequence

TEXT = "sha256:ü\nsecond line"


def config(**settings: str) -> Config:
    return Config({**Config().given, **{f"workbench.{name}": Given(Switch(word)) for name, word in settings.items()}})


def decoded(sequence: str) -> str:
    return base64.b64decode(sequence.removeprefix("\x1b]52;c;").removesuffix("\a")).decode()


def test_a_text_is_copied_by_osc_52() -> None:
    assert decoded(clipboard_sequence(TEXT, {})) == TEXT


def test_tmux_gets_the_sequence_plain_and_wrapped() -> None:
    found = re.fullmatch(
        "(\x1b]52;c;[^\a]*\a)\x1bPtmux;(.*)\x1b\\\\", clipboard_sequence(TEXT, {"TMUX": "/socket,1,0"})
    )
    assert found is not None
    assert decoded(found[1]) == TEXT
    assert decoded(found[2].replace("\x1b\x1b", "\x1b")) == TEXT


@pytest.mark.parametrize(
    ("settings", "environment", "expected"),
    [
        ({}, {}, Connection()),
        ({}, {"SSH_TTY": ""}, Connection()),
        ({}, {"SSH_TTY": "/dev/pts/3"}, Connection(False, True, 15, 4.0)),
        ({}, {"SSH_CONNECTION": "10.0.0.1 5 10.0.0.2 22"}, Connection(False, True, 15, 4.0)),
        ({"mouse": "on"}, {"SSH_TTY": "/dev/pts/3"}, Connection(True, True, 15, 4.0)),
        ({"remote": "off"}, {"SSH_TTY": "/dev/pts/3"}, Connection()),
        ({"remote": "on"}, {}, Connection(False, True, 15, 4.0)),
        ({"mouse": "off"}, {}, Connection(mouse=False)),
    ],
)
def test_a_remote_connection_is_slow_and_without_mouse_unless_the_config_says_otherwise(
    settings: dict[str, str], environment: dict[str, str], expected: Connection
) -> None:
    assert connection(config(**settings), environment) == expected
