"""Whether to use a judge: gates, what they lack and mean, their words, recommendations."""
