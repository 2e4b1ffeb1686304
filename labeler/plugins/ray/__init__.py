"""Labeling on many processors and machines with Ray Data, shard by shard."""
