"""Optional parts, one package each, declared as entry points like those of other distributions.

They import the core, never each other; the core finds them by name only.
"""
