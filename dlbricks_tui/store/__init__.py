"""The results store: records, queries, export and import."""
