"""Work done early: the warehouse is opened, and what results and the report need is imported."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import Any

from schemas.frame import Frame
from tasks.kit.code_digest import reachable_digest
from warehouse.store import Warehouse

MODULES = ("flows.results.audit_results", "flows.results.result_stages")
PARTS = ("page.html.j2", "parts.html.j2")
"""Templates that the report's own template uses."""

CATALOGUES = (("tasks.statistics", "STATISTICS"), ("tasks.charts", "CHARTS"))
SCHEMAS = ("schemas.judging", "schemas.results", "schemas.conclusions", "schemas.calibration")
"""Modules of the frames that results are made of."""


@contextmanager
def opened_early(path: Path) -> Iterator[None]:
    """Make and examine the warehouse in a thread while Prefect is imported in the block."""

    def visit() -> None:
        # The run's first visit meets the same error and reports it.
        with suppress(Exception):
            Warehouse(path, patience_seconds=0).query("select 1")

    visiting = Thread(target=visit, daemon=True)
    visiting.start()
    try:
        yield
    finally:
        # Also after Ctrl-C: it removes the folder of its draft.
        visiting.join()


def prepare_results() -> None:
    """Import modules, load catalogues, build schemas, compile templates, digest the code.

    A run does this while judges are asked.
    """
    for module in MODULES:
        import_module(module)
    for module, name in CATALOGUES:
        catalogue = getattr(import_module(module), name)
        for entry in catalogue:
            catalogue[entry]
    for module in SCHEMAS:
        for model in vars(import_module(module)).values():
            if isinstance(model, type) and issubclass(model, Frame):
                model.prepare()
    from flows.results.result_stages import conclude_findings, count_votes, log_votes, measure
    from tasks.report import TEMPLATE
    from tasks.reporting.page import environment

    for template in (TEMPLATE, *PARTS):
        environment().get_template(template)
    stages: tuple[Any, ...] = (log_votes, count_votes, measure, conclude_findings)
    for stage in stages:
        reachable_digest(stage.fn.__module__)
