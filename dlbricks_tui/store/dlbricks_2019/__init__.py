"""The measurements that the paper's authors published in 2019, imported as results."""

# The id of their method: each layer alone, fed from a plain array, 50 times.
PROTOCOL = "dlbricks-2019"
