"""Corrections by people: the file, and how it overlays labels."""
