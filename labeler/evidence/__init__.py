"""Evidence for numbers: what people must read, and how far a judge's number can be believed."""
