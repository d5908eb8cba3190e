"""Runs: start, follow, show and control them."""
