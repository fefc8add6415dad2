"""Exit codes of the commands."""

from enum import IntEnum


class ExitCode(IntEnum):
    """How a command ended."""

    DONE = 0
    """done"""
    FAILED = 1
    """the run failed, or another program held the warehouse for too long; earlier results remain.
    Also if the reader of a pipe, such as ``head``, has ended. With ``voirdire gate``: a gate
    fails"""
    WRONG_USE = 2
    """wrong usage or wrong input; no judge was asked"""
    WITH_GAPS = 3
    """``voirdire audit`` completed with gaps: some ballots have no vote. Run the same command again
    to ask only these. With ``voirdire gate``: no gate fails, but one is inconclusive (drift without
    an alert does not count)"""
    INTERRUPTED = 130
    """stopped by Ctrl-C; every saved vote is kept. ``voirdire booth``, ``voirdire browse`` and
    ``voirdire serve`` run until they are stopped, by Ctrl-C or SIGTERM, and end with 0"""
    TERMINATED = 143
    """stopped by SIGTERM; every saved vote is kept"""
