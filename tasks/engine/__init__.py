"""Asking providers: queue, rate limits, budget, journal, client, worker process."""
