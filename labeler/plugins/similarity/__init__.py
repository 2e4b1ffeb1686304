"""Answer relevancy by generated questions and embeddings."""
