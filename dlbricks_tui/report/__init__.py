"""Documents as pages and pictures: the paper's tables and figures, comparisons, and graphs of models as files."""
