"""What a user can choose: each setting is declared once, and options, boxes, the config file and commands follow."""
