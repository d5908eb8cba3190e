"""The secret of a suite, from which its ids and random choices follow."""

import hashlib
import hmac
import random
import secrets
from dataclasses import dataclass

ID_DIGITS = 32


@dataclass(frozen=True, slots=True)
class Seed:
    """A secret from which ids and random choices are derived; none of them reveals another."""

    secret: bytes

    def id_of(self, *what: str) -> str:
        """Return 32 random hexadecimal digits, always the same for the same words."""
        return self._digest("id", *what)[:ID_DIGITS]

    def chance(self, purpose: str) -> random.Random:
        """Return a generator of random choices."""
        return random.Random(int(self._digest("chance", purpose), 16))

    def _digest(self, *what: str) -> str:
        # With lengths: two different lists of texts give different messages.
        message = b"".join(b"%d:%b" % (len(text), text) for text in (part.encode() for part in what))
        return hmac.new(self.secret, message, hashlib.sha256).hexdigest()


def fresh_seed() -> Seed:
    return Seed(secrets.token_bytes(32))


def seed_of(text: str) -> Seed:
    """Return the seed that the user has chosen."""
    return Seed(hashlib.sha256(text.encode()).digest())
