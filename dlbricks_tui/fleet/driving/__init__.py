"""The driver: it gives hosts tasks, checks and stores what they return."""
