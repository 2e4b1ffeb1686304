"""Annotation tools: tasks for people, and their answers as corrections."""
