"""Hosts that are reached over SSH, and their workers."""
