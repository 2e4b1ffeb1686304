"""Labeling on several processes and machines: rows in parts, each labeled to its own partition.

The rows of Parquet files are divided into parts. A worker labels a part with the same pipeline as
one machine, in a store of the part's own, and writes its labels as one Parquet file, which appears
when it is complete. Any worker can therefore repeat any part at no cost, in any order. One quota
server allocates what all workers share: the budget, and requests and tokens per minute.

Engines are interchangeable: :mod:`~labeler.integrations.ray.cluster` uses Ray, and no other module
imports it.
"""
