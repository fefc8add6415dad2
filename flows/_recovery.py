"""Replies to ballots of a run that has ended, which the next run saves: in its journal, say."""

from datetime import datetime
from pathlib import Path

import polars as pl

from schemas.judging import Ballots, Votes
from tasks.judge import vote_frame, vote_row
from tasks.providers._caller import Told
from tasks.providers._journal import read_journal
from tasks.providers._reply import Reply
from warehouse.store import Saving, Warehouse

COUNTS = """
    select
        count(*) as asked, sum(prompt_tokens)::bigint as prompt_tokens,
        sum(completion_tokens)::bigint as completion_tokens,
        case when count(*) = count(cost_usd) then sum(cost_usd) end as cost_usd,
    from votes where run = ?
"""


def journal_of(warehouse: Warehouse, run: str) -> Path:
    """Return the place of a run's journal: beside the warehouse."""
    return warehouse.path.with_name(f"{warehouse.path.name}.replies") / f"{run}.jsonl"


def discard_journal(journal: Path) -> None:
    """Remove a journal whose replies are all saved, and its folder with the last one."""
    journal.unlink(missing_ok=True)
    folder = journal.parent
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def recover(warehouse: Warehouse) -> int:
    """Save what runs that are over left in their journals; return the number of new votes."""
    journals = sorted(journal_of(warehouse, "").parent.glob("*.jsonl"))
    if not journals:
        return 0
    running = warehouse.query("select run from runs where state = 'running'")["run"].to_list()
    return sum(_recover(warehouse, path) for path in journals if path.stem not in running)


def _recover(warehouse: Warehouse, journal: Path) -> int:
    told = {line.pop("id").rsplit("/", 1)[0]: line for line in read_journal(journal)}
    replies = {}
    for ballot_id, line in told.items():
        cast_at = datetime.fromisoformat(line.pop("cast_at"))
        replies[ballot_id] = Told(Reply(**line), cast_at)
    new = save_late(warehouse, journal.stem, replies)
    discard_journal(journal)
    return new


def save_late(warehouse: Warehouse, run: str, replies: dict[str, Told]) -> int:
    """Save replies to ballots that an ended run asked, as its votes; return how many are new."""
    among = pl.DataFrame({"ballot_id": list(replies)}, schema={"ballot_id": pl.String})
    prompts = dict(
        warehouse.read(Ballots, among=among).select("ballot_id", "prompt").unique().iter_rows()
    )
    rows = [
        vote_row(ballot_id, prompt, replies[ballot_id].reply, replies[ballot_id].cast_at)
        for ballot_id, prompt in prompts.items()
    ]
    new = warehouse.save([Saving(Votes, vote_frame(rows), first_wins=True)], run=run)
    warehouse.update_run(run, **warehouse.query(COUNTS, [run]).to_dicts()[0])
    return new
