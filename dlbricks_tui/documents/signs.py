"""Signs beside the latencies of parts of a model, or in their place."""

# On the critical path.
CRITICAL = "*"
# Not measured yet.
UNKNOWN = "·"
# With a wide interval.
WIDE = "≈"
# No runtime can run it alone.
CANNOT = "cannot"
# Not needed.
LEFT_OUT = "-"
