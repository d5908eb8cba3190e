"""The home screen: models, decomposition, details and estimate."""
