"""Networks without names and weights, suites of bricks of private models, and results that others have measured."""
