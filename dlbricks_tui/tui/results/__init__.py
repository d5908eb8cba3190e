"""The screens of stored results: find, read, compare, exchange and delete them."""
