"""The screen of how much load a model can serve."""
