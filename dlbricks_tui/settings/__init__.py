"""The settings, each declared once: options, boxes, the config file and repeated commands follow from it."""
