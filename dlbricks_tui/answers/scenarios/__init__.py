"""Scenarios: how much load a model can serve, predicted from stored results or measured by LoadGen."""
