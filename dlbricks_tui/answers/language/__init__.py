"""How fast language models run on a host, before they are downloaded."""
