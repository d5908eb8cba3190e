"""The screen of systems: what was measured where, and which is best for a model."""
