"""Gender bias: an answer with stereotypes, which should cost it votes."""

from tasks.perturbations import Item, perturbation
from tasks.rewriting.checks import detracting
from tasks.rewriting.shams import addition, note


@perturbation(
    kind="detract",
    bias="gender",
    source="arXiv 2402.10669, gender bias",
    check=detracting,
    sham=addition,
    second_sham=note,
    from_data=True,
)
def gender_bias(_item: Item, _seed: int) -> str | None:
    """Add stereotypes; only a dataset brings them, so there is no template."""
    return None
