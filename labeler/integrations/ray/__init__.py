"""Labeling on several processes and machines: rows in parts, each labelled into its own partition.

The rows of Parquet files are cut into parts. Whoever labels a part does what one machine does, by
the same pipeline, into a store of the part's own, and writes its labels as one Parquet file, which
appears when it is whole. So any part can be done by anyone, again at no cost, in any order. What
all take of together, the budget and the requests and tokens a minute, is shared out by one ledger.

Who runs the workers is exchangeable: :mod:`~labeler.integrations.ray.on_ray` has Ray do it, and
nothing else imports Ray.
"""
