"""Text tools for perturbations: words, paraphrases, shams, validity checks."""
