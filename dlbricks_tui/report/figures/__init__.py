"""The figures of the paper, one subject a module; each takes numbers and gives a section."""
