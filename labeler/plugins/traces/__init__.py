"""Rows from production traces: spans of several formats, joined by trace."""
