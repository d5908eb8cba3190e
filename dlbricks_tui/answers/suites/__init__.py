"""Suites: which models, runtimes and decoys go into one, and how one is measured."""
