"""Chance that can be repeated by whoever knows the seed, and tells nobody else anything."""

import hashlib
import hmac
import random
import secrets
from dataclasses import dataclass

ID_DIGITS = 32


@dataclass(frozen=True, slots=True)
class Seed:
    """A secret; what is drawn from it in one respect tells nothing about what is drawn in another."""

    secret: bytes

    def id_of(self, *what: str) -> str:
        """A random number of 32 hexadecimal digits, for the same thing always the same."""
        return self._digest("id", *what)[:ID_DIGITS]

    def chance(self, purpose: str) -> random.Random:
        """A stream of random choices, none of which is ever shown."""
        return random.Random(int(self._digest("chance", purpose), 16))

    def _digest(self, *what: str) -> str:
        # Lengths, so that two lists of texts never look alike.
        message = b"".join(b"%d:%b" % (len(text), text) for text in (part.encode() for part in what))
        return hmac.new(self.secret, message, hashlib.sha256).hexdigest()


def fresh_seed() -> Seed:
    """A seed that nobody can guess."""
    return Seed(secrets.token_bytes(32))


def seed_of(text: str) -> Seed:
    """The seed that a person has chosen."""
    return Seed(hashlib.sha256(text.encode()).digest())
