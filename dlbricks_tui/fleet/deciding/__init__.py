"""The answers of a fleet run: estimates, orders of hosts, and the bricks that decide most."""
