"""Text tools: words, paraphrases, shams, validity checks, and which words changed."""
