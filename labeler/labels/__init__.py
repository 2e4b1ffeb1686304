"""Judge answers, their contract and the records that store them."""
