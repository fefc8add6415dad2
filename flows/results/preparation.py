"""Import and read, while judges are asked, what results and the report need."""

from importlib import import_module
from typing import Any

from schemas.frame import Frame
from tasks.kit.code_digest import reachable_digest

MODULES = ("flows.results.audit_results", "flows.results.result_stages")
PARTS = ("page.html.j2", "parts.html.j2")
"""Templates that the report's own template uses."""

CATALOGUES = (("tasks.statistics", "STATISTICS"), ("tasks.charts", "CHARTS"))
SCHEMAS = ("schemas.judging", "schemas.results", "schemas.conclusions", "schemas.calibration")
"""Modules of the frames that results are made of."""


def prepare_results() -> None:
    """Import modules, load catalogues, build schemas, compile templates, digest the code."""
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
