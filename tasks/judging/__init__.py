"""Ballots and their verdicts: the parser, sequential stopping, people as judges."""
