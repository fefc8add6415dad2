"""What all web pages share: the server, the guard, templates, static files, Markdown."""
