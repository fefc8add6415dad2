"""The stages up to the votes as Prefect tasks, in the order in which an audit runs them.

Those from the votes on are in ``flows.results.result_stages``, which takes longer to import.
"""

from tasks import curate, judge, pair, perturb
from tasks.kit.stage import stage, uncached_task

# Not cached: its input is a name, and the file with that name may have changed.
import_dataset = uncached_task(curate.import_dataset)
perturb_answers = stage(perturb.perturb, run_name="perturb {name}")
pair_up = stage(pair.pair_up)
draw_ballots = stage(judge.draw_ballots)
# Not cached: votes are stored in the warehouse, and only ballots without a vote get here.
cast_votes = uncached_task(judge.cast_votes)
