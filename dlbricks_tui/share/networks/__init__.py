"""Networks as they travel: without names, texts, and the values of weights."""
