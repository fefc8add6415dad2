"""Who ran which version of the code, for the table ``runs``."""

import getpass
import os
from importlib.metadata import version

from tasks.kit.code_digest import ALL_ROOMS, code_digest


def code_version() -> str:
    """Return the version of the distribution and a digest of its code."""
    return f"{version('voirdire')}+{code_digest(ALL_ROOMS)[:12]}"


def user_name() -> str:
    """Return the name of the user of this process."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # In a container the user id may have no name.
        return f"uid {os.getuid()}"
