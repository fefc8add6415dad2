"""Parts of judge prompts: data model, placeholders, variants, and FastChat's file of prompts."""
