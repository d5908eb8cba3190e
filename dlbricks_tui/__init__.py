"""Benchmarks deep-learning models by their unique layer sequences."""

__version__ = "0.1.0"
