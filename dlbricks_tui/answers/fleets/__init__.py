"""Fleet runs: their request from plain options, and their results as plain values."""
