"""Schemas: typed frames for all data that passes between stages."""
