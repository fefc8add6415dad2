"""What leads from results to the pairs behind them: examples, and links to their pages."""
