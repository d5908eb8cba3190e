"""Keys as they stand on a keyboard, and as Textual names them."""

import re

from textual.keys import _character_to_key, key_to_character

# What Textual calls keys that carry a sign.
_SIGNS = {"plus": "+", "minus": "-", "slash": "/", "backslash": "\\", "at": "@", "underscore": "_"}
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
_MODIFIERS = {"c": "ctrl", "control": "ctrl", "s": "shift", "a": "alt"}
_WORDS = r"enter|tab|space|escape|backspace|delete|insert|home|end|pageup|pagedown|up|down|left|right|f[1-9]|f1[0-2]"
_KEY = re.compile(rf"(?:alt\+)?(?:ctrl\+[a-z]|(?:ctrl\+)?(?:shift\+)?(?:{_WORDS}))|alt\+[^\W_]")


class NoSuchKeyError(ValueError):
    """No key of a terminal is called so."""


def shown(key: str) -> str:
    """A key as people call it: `ctrl+d` is `^d`."""
    if key.startswith("ctrl+"):
        return f"^{shown(key.removeprefix('ctrl+'))}"
    if key.startswith(("shift+", "alt+")):
        modifier, _, rest = key.partition("+")
        return f"{modifier}-{shown(rest)}"
    if key in _SHOWN:
        return _SHOWN[key]
    sign = key_to_character(key)
    return sign if sign is not None and sign.isprintable() else key


def all_shown(keys: tuple[str, ...]) -> str:
    """All keys of an action."""
    return " ".join(map(shown, keys))


def named(written: str) -> str:
    """What Textual calls a key that a person has written, in either way; raises where there is none of that name."""
    key = written.strip()
    if len(key) == 1 and key.isprintable():
        return _NAMED.get(key) or _character_to_key(key)
    if key.startswith("^"):
        key = f"ctrl+{key[1:]}"
    *modifiers, base = re.split(r"(?<=\w)[+-](?=.)", key)
    modifiers = [_MODIFIERS.get(each.lower(), each.lower()) for each in modifiers]
    if len(base) > 1 or "ctrl" in modifiers:
        base = base.lower()
    base = _NAMED.get(base, base)
    key = "+".join([*modifiers, base])
    if not types_text(key) and not _KEY.fullmatch(key):
        raise NoSuchKeyError(written)
    return key


def types_text(key: str) -> bool:
    """Whether the key, where one types, is a letter or a sign."""
    typed = key_to_character(key)
    # Some signs have names of their own in Textual, which do not lead back to them there.
    return key in _SIGNS or (typed is not None and typed.isprintable())
