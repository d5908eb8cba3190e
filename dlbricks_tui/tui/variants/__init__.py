"""The screen of the variants of a model."""
