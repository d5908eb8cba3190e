"""Evaluations: measure what a file states, compare with earlier results, and write the file that repeats a run."""
