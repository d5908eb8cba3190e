"""The paper's tables and figures, from what is in the store."""
