"""The bases of screens, panels and lists."""
