"""The review app: people correct a judge's labels in the browser, on this machine."""
