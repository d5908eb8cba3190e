"""Text for the clipboard of the person's own terminal, which may be far away: by the terminal's own means."""

import base64
from collections.abc import Mapping

_END = "\a"


def copying(text: str, environment: Mapping[str, str]) -> str:
    """What makes the terminal take the text to its clipboard (OSC 52), where it lets programs do so.

    tmux takes it itself with `set-clipboard on`, and hands on what is wrapped with `allow-passthrough on`; which of
    them counts cannot be asked, and twice the same text does no harm.
    """
    sequence = f"\x1b]52;c;{base64.b64encode(text.encode()).decode()}{_END}"
    if not environment.get("TMUX"):
        return sequence
    doubled = sequence.replace("\x1b", "\x1b\x1b")
    return f"{sequence}\x1bPtmux;{doubled}\x1b\\"
