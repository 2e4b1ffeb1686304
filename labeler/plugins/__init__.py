"""Optional parts, one package each, declared as entry points, as in other distributions.

They import the core, never each other; the core finds them by name only.
"""
