"""What travels to hosts: networks of layers without names and weights."""
