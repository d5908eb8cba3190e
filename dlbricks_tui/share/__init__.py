"""Suites: bricks of private models, timed on machines that must not see the models."""
