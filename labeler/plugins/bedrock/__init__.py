"""A judge behind Amazon Bedrock's Converse API."""
