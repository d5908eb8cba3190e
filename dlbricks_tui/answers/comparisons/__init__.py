"""Comparisons of stored results: of one model in several combinations, or of two selections."""
