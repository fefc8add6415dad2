"""Judges that cannot be called now: no key, no address, or a cost without a bound.

It is asked before anything heavy is imported, so it uses no frames.
"""

from collections.abc import Mapping

from flows.studies import Study
from tasks.engine.litellm_adapter import diverting
from tasks.providers import JUDGES, provider_of


def not_ready(study: Study) -> dict[str, str]:
    """Return the judges that cannot be asked, each with the reason."""
    unbounded = _without_bounds(study)
    reasons = {
        judge: "; ".join(
            filter(None, (_diverted(judge), _without_key(judge), unbounded.get(judge)))
        )
        for judge in study.judges
    }
    return {judge: reason for judge, reason in reasons.items() if reason}


def not_ready_line(reasons: Mapping[str, str]) -> str:
    """Say which judges cannot be asked, those with the same reason together."""
    alike: dict[str, list[str]] = {}
    for judge, reason in reasons.items():
        alike.setdefault(reason, []).append(judge)
    return "; ".join(f"{', '.join(judges)}: {reason}" for reason, judges in alike.items())


def _diverted(judge: str) -> str:
    try:
        names = diverting(provider_of(judge), JUDGES[judge])
    except ValueError as error:
        # A variable that holds no address: the other judges are asked all the same.
        return str(error).rstrip(".")
    if not names:
        return ""
    return (
        f"{' and '.join(names)} would send its calls elsewhere, without a trace in its ballots "
        "(unset it, or give the address as api_base in a provider file of your own)"
    )


def _without_key(judge: str) -> str:
    missing = provider_of(judge).needed()
    return f"no API key or address in {' and '.join(missing)}" if missing else ""


def _without_bounds(study: Study) -> dict[str, str]:
    if study.budget_usd is None:
        return {}
    # Imports frames, which takes half a second.
    from flows.running.budget_check import without_bounds

    return without_bounds(study)
