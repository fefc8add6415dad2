"""What perturbations are made with: words, paraphrases, shams, validity checks."""
