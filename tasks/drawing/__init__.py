"""What charts are drawn with."""
