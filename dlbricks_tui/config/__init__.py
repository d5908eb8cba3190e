"""The settings: what they allow, where they are set, and the config file."""
