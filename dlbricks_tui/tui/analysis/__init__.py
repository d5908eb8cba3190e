"""The screen of how fast a model could be, and what is worth changing."""
