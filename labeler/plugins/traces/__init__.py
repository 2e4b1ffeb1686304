"""Rows from production traces: spans of several formats, joined by trace.

``formats`` turns an exported object into :class:`~labeler.plugins.traces.conventions.Span` values.
``conventions`` knows the attributes of each
instrumentation, :mod:`labeler.data.inputs_outputs` the shapes of their texts. ``joining`` makes
rows of the spans of one trace, and ``importing`` reads files, samples, and counts what gives no
row.
"""
