"""A judge behind Google's Gemini API."""
