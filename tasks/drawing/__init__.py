"""What charts are made of: parts of Vega-Lite specs, and what draws them."""
