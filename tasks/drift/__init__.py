"""Changes between waves: their size, their tests, and which of them raise an alert."""
