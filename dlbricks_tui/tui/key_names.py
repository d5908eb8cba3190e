"""Keys as they stand on a keyboard, and as Textual names them."""

import re

from textual.keys import _character_to_key

# What Textual calls keys that carry a sign.
_SIGNS = {"plus": "+", "minus": "-", "equals_sign": "=", "slash": "/", "question_mark": "?", "colon": ":", "comma": ","}
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
_NAMED = {sign: name for name, sign in _SHOWN.items()}
_WORDS = r"enter|tab|space|escape|backspace|delete|insert|home|end|pageup|pagedown|up|down|left|right|f[1-9]|f1[0-2]"
_KEY = re.compile(rf"(?:alt\+)?(?:ctrl\+[a-z]|(?:ctrl\+)?(?:shift\+)?(?:{_WORDS}))|(?:alt\+)?[^\W_]")


class NoSuchKeyError(ValueError):
    """No key of a terminal is called so."""


def shown(key: str) -> str:
    """A key as people call it: `ctrl+d` is `^d`."""
    if key.startswith("ctrl+"):
        return f"^{shown(key.removeprefix('ctrl+'))}"
    if key.startswith(("shift+", "alt+")):
        modifier, _, rest = key.partition("+")
        return f"{modifier}-{shown(rest)}"
    return _SHOWN.get(key, key)


def all_shown(keys: tuple[str, ...]) -> str:
    """All keys of an action."""
    return " ".join(map(shown, keys))


def named(written: str) -> str:
    """What Textual calls a key that a person has written, in either way; raises where there is none of that name."""
    key = written.strip()
    if len(key) == 1 and key.isprintable():
        return _NAMED.get(key) or _character_to_key(key)
    key = re.sub(r"^\^", "ctrl+", re.sub(r"^(shift|alt|ctrl|control|c|s|a)-", _modifier, key, flags=re.IGNORECASE))
    modifiers, plus, base = key.rpartition("+")
    base = _NAMED.get(base, base)
    if len(base) > 1 or modifiers:
        base, modifiers = base if modifiers == "alt" and len(base) == 1 else base.lower(), modifiers.lower()
    key = f"{modifiers}{plus}{base}"
    if base in _SIGNS and not modifiers:
        return base
    if not _KEY.fullmatch(key):
        raise NoSuchKeyError(written)
    return key


def types_text(key: str) -> bool:
    """Whether the key, where one types, is a letter or a sign."""
    return key == "space" or key in _SIGNS or not re.fullmatch(rf"(?:\w+\+)+.+|{_WORDS}", key)


def _modifier(found: re.Match[str]) -> str:
    return {"c": "ctrl", "control": "ctrl", "s": "shift", "a": "alt"}.get(found[1].lower(), found[1].lower()) + "+"
