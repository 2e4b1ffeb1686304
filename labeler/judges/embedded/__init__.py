"""The embedded judge: lexical scores, no network, no key."""
