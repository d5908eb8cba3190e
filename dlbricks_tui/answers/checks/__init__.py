"""Checks of models against earlier latencies: slower, same, faster or unknown."""
