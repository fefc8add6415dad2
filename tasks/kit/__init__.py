"""What every room uses: catalogues, cached stages, random numbers, defaults, the command line."""
