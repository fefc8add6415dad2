"""Compact letter display: judges that share a letter are not significantly different."""

from collections.abc import Iterable


def letters(count: int, separated: Iterable[tuple[int, int]]) -> list[frozenset[int]]:
    """Return the groups of 0..count-1 that share a letter, the group of 0 first.

    Two numbers share a letter if and only if they are not ``separated``: the groups are the maximal
    sets without a separated pair.

    References
    ----------
    Piepho (2004), An algorithm for a letter-based representation of all-pairwise comparisons, J.
    Comput. Graph. Stat. 13, 456-466 (insert and absorb).

    Examples
    --------
    0 differs from 2; 1 differs from neither:

    >>> [sorted(group) for group in letters(3, [(0, 2)])]
    [[0, 1], [1, 2]]
    """
    groups = [frozenset(range(count))] if count else []
    for one, other in separated:
        split = [group for group in groups if {one, other} <= group]
        kept = [group for group in groups if not {one, other} <= group]
        new = {group - {left} for group in split for left in (one, other)}
        absorbed = [g for g in new if not any(g <= k for k in kept) and not any(g < n for n in new)]
        groups = kept + absorbed
    return sorted(groups, key=sorted)


def letter(number: int) -> str:
    """Return the letter of a group: a to z, then aa, ab and so on.

    Examples
    --------
    >>> [letter(number) for number in (0, 25, 26, 701)]
    ['a', 'z', 'aa', 'zz']
    """
    rest, last = divmod(number, 26)
    return (letter(rest - 1) if rest else "") + chr(ord("a") + last)
