"""The screen of fleets: many hosts that measure for one user."""
