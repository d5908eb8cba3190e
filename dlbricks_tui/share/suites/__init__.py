"""Suites: the bricks of private models among those of decoys, to be measured elsewhere."""
