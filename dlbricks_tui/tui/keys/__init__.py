"""Actions and the keys that trigger them."""
