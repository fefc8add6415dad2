"""Limit the memory that the allocator keeps."""

import ctypes
import os

M_ARENA_MAX, M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -8, -1, -3
"""The numbers by which ``mallopt(3)`` knows what a process may hold."""

GIB = 1 << 30


def share_one_heap() -> None:
    """Let all threads allocate from one heap, where the C library is GNU's.

    Each thread would get one of its own, which keeps what it once held: 20 MB for a study.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt:
        mallopt(M_ARENA_MAX, 1)


def prepare_for_millions() -> None:
    """Give nothing back to the system, which is a third of the time of sums over millions of rows.

    What one thread gives up another takes. Statistics are measured several at a time, so that
    products of matrices need no threads of their own. To be called before Polars and numpy are
    imported, which read their settings once.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault(
        "_RJEM_MALLOC_CONF", "narenas:1,dirty_decay_ms:20000,muzzy_decay_ms:20000"
    )
    share_one_heap()
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt:
        mallopt(M_MMAP_THRESHOLD, GIB)
        mallopt(M_TRIM_THRESHOLD, GIB)
