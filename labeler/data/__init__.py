"""Rows in; label files in and out."""
