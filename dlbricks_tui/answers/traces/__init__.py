"""Traces: run a model level by level in a process of its own, and write a file that trace viewers open."""
