"""The judge behind OpenAI's API and servers that speak it."""
