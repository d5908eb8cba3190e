"""Boxes in front of a screen that belong to no single screen."""
