"""The paper's tables and figures, drawn from the results in the store."""
