"""Indexes: files with the tally of each label as columns.

Reading labels as JSON takes far longer than counting. An index holds the fields of
:class:`labeler.calculators.tally.Tally`, from which metrics are computed batch by batch. It is
derived from labels alone and can be deleted at any time. A stale, foreign or damaged index is
rebuilt or ignored.
"""
