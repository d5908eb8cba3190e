"""Comparisons of two models, variants, systems, runtimes, days, runs or results, each with one verdict."""
