"""Start a study when another one finds drift."""

from logging import LoggerAdapter
from typing import Any

from prefect import get_client
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.objects import FlowRun, State
from prefect.flows import Flow
from prefect.logging.loggers import flow_run_logger

from flows.serving.allowed_paths import served_warehouse
from flows.studies import STUDIES, Study
from warehouse.store import Warehouse

ALERTS = """
    select r.parameters, count(d.state) as alerts
    from runs as r
    left join drifts as d
        on d.study = r.study and d.wave = json_extract_string(r.parameters, '$.wave')
        and d.state = 'alert'
    where r.run = ? group by all
"""


async def start_on_alert(flow: Flow[Any, Any], flow_run: FlowRun, state: State[Any]) -> None:
    """Start the ``on_alert`` study of the run's deployment if the run found drift.

    It runs as on its schedule, with the budget of its deployment. If its schedule is off, it may
    not spend money, so it is not started.
    """
    if flow_run.deployment_id is None or not state.is_completed():
        return
    async with get_client() as client:
        source = (await client.read_deployment(flow_run.deployment_id)).name
        target = STUDIES[source].on_alert if source in STUDIES else None
        if target is None:
            return
        # Prefect stores the form's value; the run resolved it in the same way.
        place = served_warehouse(flow_run.parameters.get("warehouse"))
        rows = Warehouse(place).query(ALERTS, [str(flow_run.id)]).rows()
        if not rows or not rows[0][1]:
            return
        wave = Study.stored(rows[0][0]).wave
        await _start(client, flow, flow_run, target, f"drift:{source}:{wave}:{target}")


async def _start(
    client: PrefectClient, flow: Flow[Any, Any], run: FlowRun, target: str, key: str
) -> None:
    # Imported only here, because few audits find drift.
    from flows.serving.deployments import read

    logger: LoggerAdapter[Any] = flow_run_logger(run, flow)
    try:
        deployment = await read(client, f"{flow.name}/{target}")
    except LookupError as error:
        logger.warning("Drift was found, but %s is not started: %s", target, error)
        return
    study, why = deployment.study, ""
    if not deployment.on:
        why = (
            f"its schedule is off. Switch it on with `voirdire schedules --on {target}`, or run it "
            "in the Prefect UI."
        )
    elif study and study.can_spend() and study.budget_usd is None:
        why = "it can spend money and has no budget_usd. Set one in its deployment."
    if why:
        logger.warning("Drift was found, but %s is not started: %s", target, why)
        return
    await client.create_flow_run_from_deployment(deployment.id, idempotency_key=key)
    logger.warning("Drift was found: started %s.", target)
