"""The screen of traces: a timeline with levels that open and close."""
