"""How much memory a process holds on to."""

import ctypes

M_ARENA_MAX = -8
"""The number by which ``mallopt(3)`` knows the most heaps a process may have."""


def share_one_heap() -> None:
    """Let all threads allocate from one heap, where the C library is GNU's.

    Each thread would get one of its own, which keeps what it once held: 20 MB for a study.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt:
        mallopt(M_ARENA_MAX, 1)
