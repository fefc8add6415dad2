"""Import and read, while judges are asked, what results and the report need."""

from importlib import import_module

from tasks.kit.code_digest import reachable_digest

MODULES = (
    "flows.results.audit_results",
    "tasks.result_stages",
    # Matplotlib imports these when it is first used.
    "matplotlib.figure",
    "matplotlib.backends.backend_svg",
)
PARTS = ("page.html.j2", "parts.html.j2")
"""Templates that the report's own template uses."""

CATALOGUES = (("tasks.statistics", "STATISTICS"), ("tasks.charts", "CHARTS"))


def prepare_results() -> None:
    """Import the modules, load the catalogues, compile the templates and digest the code."""
    for module in MODULES:
        import_module(module)
    for module, name in CATALOGUES:
        catalogue = getattr(import_module(module), name)
        for entry in catalogue:
            catalogue[entry]
    from tasks import aggregate, annotate, conclude
    from tasks.report import TEMPLATE
    from tasks.reporting.page import environment

    for template in (TEMPLATE, *PARTS):
        environment().get_template(template)
    for stage in (aggregate, annotate, conclude):
        reachable_digest(stage.__name__)
