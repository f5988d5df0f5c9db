"""The pages, each as the rows and numbers that its template shows."""
