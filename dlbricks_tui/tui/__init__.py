"""The terminal UI: a module or folder for each screen, and what all screens share."""
