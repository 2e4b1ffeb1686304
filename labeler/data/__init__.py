"""Rows in, label files in and out.

``rows`` reads input rows: ``formats`` has one module per file format, ``columns`` and ``presets``
map columns to fields, ``parsing`` makes examples. ``label_files`` and ``label_tables`` read and
write labels, ``corrections`` stores and applies people's corrections, ``ragbench`` imports
published labels, ``criteria_files`` reads criteria, ``options`` declares options.
"""
