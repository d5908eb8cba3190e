"""Results of several files side by side: regressions, hosts and versions, as one page."""
