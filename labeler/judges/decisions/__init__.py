"""Judges that decide: ``questions`` asks and makes the label, ``judge`` sends and reads."""
