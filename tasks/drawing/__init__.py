"""Parts of charts (Vega-Lite specs), and the code that draws charts."""
