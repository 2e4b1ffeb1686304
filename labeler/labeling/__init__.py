"""From rows to stored records: the only code that spends money."""
