"""Labeling through OpenAI's Batch API for half the price: submit rows, follow batches, collect.

Every step is saved in the store's folder before its result is awaited. A process that ends at any
moment loses nothing and pays for nothing twice: run the same command again.
"""
