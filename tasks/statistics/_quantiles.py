"""Normal and t distributions; scipy, which has them, is imported at first use: 16 MB."""

from typing import Any


def normal_quantile(q: Any) -> Any:
    """Return the standard normal quantile of ``q`` (a number or an array)."""
    from scipy.special import ndtri

    return ndtri(q)


def normal_tail(z: Any) -> Any:
    """Return the chance that a standard normal variable is further from 0 than ``z``."""
    from scipy.special import ndtr

    return 2 * ndtr(-abs(z))


def t_quantile(df: Any, q: Any) -> Any:
    """Return the quantile ``q`` of Student's t with ``df`` degrees of freedom."""
    from scipy.special import stdtrit

    return stdtrit(df, q)


def t_tail(df: Any, t: Any) -> Any:
    """Return the chance that Student's t with ``df`` degrees of freedom is further from 0."""
    from scipy.special import stdtr

    return 2 * stdtr(df, -abs(t))
