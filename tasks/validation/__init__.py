"""Check values of options and of TOML files."""
