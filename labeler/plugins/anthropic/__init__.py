"""A judge behind Anthropic's Messages API."""
