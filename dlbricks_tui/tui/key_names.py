"""Keys as they stand on a keyboard."""

# What Textual calls keys that carry a sign.
_SIGNS = {"plus": "+", "minus": "-", "equals_sign": "=", "slash": "/", "question_mark": "?", "colon": ":"}
_SHOWN = {
    **_SIGNS,
    "escape": "esc",
    "enter": "enter",
    "space": "space",
    "pagedown": "pgdn",
    "pageup": "pgup",
    "down": "↓",
    "up": "↑",
    "left": "←",
    "right": "→",
}


def shown(key: str) -> str:
    """A key as people call it: `ctrl+d` is `^d`."""
    if key.startswith("ctrl+"):
        return f"^{key.removeprefix('ctrl+')}"
    if key.startswith("shift+"):
        return f"shift-{shown(key.removeprefix('shift+'))}"
    return _SHOWN.get(key, key)


def all_shown(keys: tuple[str, ...]) -> str:
    """All keys of an action."""
    return " ".join(map(shown, keys))
