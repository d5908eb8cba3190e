"""Errors of the config file."""

from dlbricks_tui.errors import UserError


class ConfigError(UserError):
    """A setting is not one that dlbricks knows, or has a value that it cannot have; the message says where."""
