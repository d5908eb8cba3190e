"""The engine: dask.distributed, with one task per host and nothing repeated."""
