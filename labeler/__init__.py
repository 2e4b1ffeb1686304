"""Label once, measure for ever: an LLM-judge labeling framework for RAG evaluation."""

__version__ = "0.1.0"
