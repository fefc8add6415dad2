"""``python -m booth``, which is what ``voirdire booth`` runs."""

from booth.cli import booth

if __name__ == "__main__":
    booth(prog_name="voirdire booth")
