"""Agreement of judges with people: measures, confusion matrix and disagreements."""
