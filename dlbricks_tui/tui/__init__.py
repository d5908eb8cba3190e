"""The terminal UI: one folder per screen, with its panels, actions, background work and style."""
