"""What judge prompts are made with: their parts, their placeholders, FastChat's file of them."""
