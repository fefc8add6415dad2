"""`voirdire init`: the examples in this folder, written to the user's own folder."""

from pathlib import Path

from tasks.kit.command_line import say
from tasks.kit.user_folder import VARIABLE, home
from tasks.reporting.wording import count

EXAMPLES = Path(__file__).parent


def write_examples() -> None:
    """Write the examples into the user's own folder; files that exist are kept.

    Raise ValueError if the folder cannot be written.
    """
    folder = home()
    files = (file.relative_to(EXAMPLES) for file in sorted(EXAMPLES.rglob("*.*")))
    names = [name for name in files if name.suffix != ".pyc" and name.stem != "__init__"]
    written = []
    for name in names:
        copy = folder / name
        try:
            if not copy.exists():
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_text((EXAMPLES / name).read_text(encoding="utf-8"), encoding="utf-8")
                written.append(name)
        except OSError as error:
            raise ValueError(
                f"{copy} cannot be written: {error.strerror or error}. Set {VARIABLE} to a folder "
                "that you may write."
            ) from error
    say(
        "\n".join(
            [
                f"{folder}: {count(len(written), 'file')} written.",
                *(f"  {name}" for name in written),
            ]
        )
    )
    if kept := len(names) - len(written):
        say(f"{count(kept, 'file')} already there, unchanged.")
    say("Next: voirdire list studies, then voirdire audit example (offline, within a minute).")
