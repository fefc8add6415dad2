"""Judges that cannot be asked now: no key, no address, or a cost without a bound.

This is checked before the heavy imports, so without frames.
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
    """Describe the judges that cannot be asked, grouped by reason."""
    by_reason: dict[str, list[str]] = {}
    for judge, reason in reasons.items():
        by_reason.setdefault(reason, []).append(judge)
    return "; ".join(f"{', '.join(judges)}: {reason}" for reason, judges in by_reason.items())


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


def _without_key(judge: str) -> str:
    missing = provider_of(judge).missing_variables()
    return f"no API key or address in {' and '.join(missing)}" if missing else ""


def _without_bounds(study: Study) -> dict[str, str]:
    if study.budget_usd is None:
        return {}
    # Imports frames, which takes half a second.
    from flows.running.budget_check import without_bounds

    return without_bounds(study)
