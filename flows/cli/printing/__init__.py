"""What commands print: tables, their legends and single lines."""
