"""Marks on any two rows of one kind, and the screen that compares them."""
