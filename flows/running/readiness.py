"""Judges that cannot be asked now: no key, no address, or a cost without a bound.

This is checked before the heavy imports, so without frames. Also: whether a budget suffices, and
what runs if no study is named.
"""

from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import Any

from flows.studies import STUDIES, Study
from tasks.engine.litellm_adapter import diverting, highest_price
from tasks.engine.queue import most_tokens
from tasks.kit.printable import same_command
from tasks.progress import usd
from tasks.providers import JUDGES, PROVIDERS, provider_of
from warehouse.path_checks import studies_in

TOTAL_USD = "if(bool_and(cost_usd is not null), sum(cost_usd), null)"
"""Sum over rows of ``mart.cost``; null where the price of one is not known."""
SPENT = f"select {TOTAL_USD} from mart.cost where study = ? and not human"  # noqa: S608
"""What a study has cost so far, in US dollars; null where the price of a judge is not known."""


def not_ready(study: Study) -> dict[str, str]:
    """Return the judges that cannot be asked, each with the reason."""
    unbounded = without_bounds(study)
    reasons = {}
    for judge in study.judges:
        found = filter(None, (_diverted(judge), _not_set(judge), unbounded.get(judge)))
        if reason := "; ".join(found):
            reasons[judge] = reason
    return reasons


def not_ready_line(reasons: Mapping[str, str]) -> str:
    """Describe the judges that cannot be asked, grouped by reason."""
    by_reason: dict[str, list[str]] = {}
    for judge, reason in reasons.items():
        by_reason.setdefault(reason, []).append(judge)
    return "; ".join(f"{', '.join(judges)}: {reason}" for reason, judges in by_reason.items())


def _not_set(judge: str) -> str:
    """Name the environment variables that calls require and that are not set; empty if none."""
    provider = provider_of(judge)
    holds = {provider.api_base_variable: "address", provider.key_variable: "API key"}
    missing: dict[str, list[str]] = {}
    for variable in provider.missing_variables():
        missing.setdefault(holds.get(variable, "value"), []).append(variable)
    return " and ".join(f"no {what} in {' and '.join(each)}" for what, each in missing.items())


def _diverted(judge: str) -> str:
    try:
        names = diverting(provider_of(judge), JUDGES[judge])
    except ValueError as error:
        # A variable holds no valid address: the other judges can still be asked.
        return str(error).rstrip(".")
    if not names:
        return ""
    return (
        f"{' and '.join(names)} would send its calls to another address, which its ballots do not "
        "record (unset it, or give the address as api_base in your own provider file)"
    )


def without_bounds(study: Study) -> dict[str, str]:
    """Return the judges whose cost per call has no bound, so that no budget can hold, and why."""
    if study.budget_usd is None:
        return {}
    # Imports frames, which takes half a second.
    from tasks.judge import dropped_params, merge_dropped

    dropped = merge_dropped(dropped_params(study.judges, name) for name in study.prompts)
    gaps = {judge: _missing(judge, dropped.get(judge, [])) for judge in study.judges}
    return {
        judge: f"the budget of {study.budget_usd:g} USD cannot hold, because a call's cost has no "
        f"bound: {JUDGES[judge].model} has {' and '.join(missing)}; "
        f"give it in {PROVIDERS.files[JUDGES[judge].provider].name}, or ask without a budget"
        for judge, missing in gaps.items()
        if missing
    }


def _missing(judge: str, dropped: list[str]) -> list[str]:
    asked = JUDGES[judge]
    if provider_of(judge).simulated:
        return []
    sent = {name: value for name, value in asked.params.items() if name not in dropped}
    missing = []
    if highest_price(asked) is None:
        missing.append(
            "no known price (usd_per_million = { prompt = ..., completion = ... }, in US dollars)"
        )
    if most_tokens(asked.model_copy(update={"params": sent})) is None:
        unsent = " that is sent" if most_tokens(asked) else ""
        missing.append(f"no max_tokens{unsent} (params = {{ max_tokens = ... }})")
    return missing


def unnamed_line(default: str, changes: Mapping[str, Any], warehouse: Path) -> str:
    """Say that the study ``default`` runs if none is named, and under which name it is saved."""
    name, more = changes.get("name"), ""
    if name is None:
        more = " Give --name NAME to save it under another name."
    elif name in STUDIES or name in studies_in(warehouse):
        more = f" `voirdire audit {quote(name)}` runs the settings of study {name}."
    return (
        f"This runs study {default}, as no study is named, and saves it as {name or default}.{more}"
    )


def again_line(study: Study, warehouse: Path) -> str:
    """Say how to ask for the missing ballots, and what that may cost in addition."""
    again = f"run {same_command(study.wave)} again: it asks only the missing ballots"
    if study.budget_usd is None:
        return again
    # Imports frames.
    from warehouse.store import Warehouse

    spent = Warehouse(warehouse).query(SPENT, [study.name]).item()
    so_far = f"; study {study.name} has cost {usd(spent)} USD so far" if spent is not None else ""
    return f"{again}, and may spend up to {study.budget_usd:g} USD again{so_far}"


def budget_line(budget_usd: float, usd: float | None, most_usd: float | None) -> str:
    """Compare a budget with the estimated cost."""
    budget = f"The budget of {budget_usd:g} USD"
    if usd is None or most_usd is None:
        return f"{budget} cannot be compared with the cost, which is unknown."
    # Amounts that differ must differ as they are shown.
    known = {budget_usd, usd, most_usd}
    digits = next(
        (n for n in range(2, 9) if len({f"{each:.{n}f}" for each in known}) == len(known)), 9
    )
    amounts = f"{usd:.{digits}f} USD, at most {most_usd:.{digits}f}"
    if usd > budget_usd:
        return f"{budget} is exceeded by the estimate ({amounts}): the run would end with gaps."
    if most_usd > budget_usd:
        return (
            f"{budget} covers the estimate ({amounts}), but not the highest possible cost: if "
            "replies are long, the run may end with gaps."
        )
    return (
        f"{budget} covers the estimate and the highest possible cost ({amounts}), "
        "unless calls have to be repeated."
    )
