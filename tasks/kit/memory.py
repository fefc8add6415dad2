"""Settings of the memory allocators."""

import ctypes
import os

M_ARENA_MAX, M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -8, -1, -3
"""Parameter numbers of ``mallopt(3)``."""

GIB = 1 << 30


def share_one_heap() -> None:
    """Let all threads allocate from one heap, if the C library is glibc.

    Otherwise each thread has its own heap, which keeps freed memory: 20 MB for a study.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt:
        mallopt(M_ARENA_MAX, 1)


def prepare_for_millions() -> None:
    """Do not return memory to the system: that takes a third of the time of sums over many rows.

    Memory freed by one thread is reused by others. Call this before importing Polars, which reads
    its settings only once.
    """
    os.environ.setdefault(
        "_RJEM_MALLOC_CONF", "narenas:1,dirty_decay_ms:20000,muzzy_decay_ms:20000"
    )
    share_one_heap()
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt:
        mallopt(M_MMAP_THRESHOLD, GIB)
        mallopt(M_TRIM_THRESHOLD, GIB)
