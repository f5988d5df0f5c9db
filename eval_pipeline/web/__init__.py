"""The web: pages and an API over the results, served (`evals view`) or written as static files."""
