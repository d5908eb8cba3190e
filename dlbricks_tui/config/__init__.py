"""The config file: the settings in it, the key bindings, and changes of single values."""
