"""Judges, and everything between a keyed example and a judge's answer."""
