"""The screen of language models: how fast each of them runs on this host."""
