"""The base of widgets that keep words in which keys are named."""


class Keyed:
    """Told when keys have changed; what is made anew whenever it is drawn need not be told."""

    def keys_changed(self) -> None:
        """Names the keys of now."""
        raise NotImplementedError
