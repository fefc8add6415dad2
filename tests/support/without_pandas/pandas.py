"""No pandas: the product does without it, and pandera takes a third of a second to import it."""

raise ModuleNotFoundError("No module named 'pandas'", name="pandas")
