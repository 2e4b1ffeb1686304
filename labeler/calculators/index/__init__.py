"""A columnar index of labels, equal to the records to the last bit."""
