"""Where paid labels are kept."""
