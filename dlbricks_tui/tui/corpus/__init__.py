"""The screen of what repeats within and across models."""
