"""Panels of several judges on the same items: pairs of judges, juries, letter displays."""
