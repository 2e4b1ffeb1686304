"""Brings labels that were made elsewhere into the project's record format."""
