"""Analyses of models: how fast a model could be, what would make it faster, and measurements that prove it."""
