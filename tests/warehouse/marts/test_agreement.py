from collections.abc import Callable

from schemas.results import Estimates
from warehouse.store import Saving, Warehouse

Make = Callable[..., Saving]


def test_a_row_per_pair_and_one_per_group(warehouse: Warehouse, make: Make) -> None:
    cell = {"perturbation": None, "kind": None, "n": 20}
    rows = [
        {
            **cell,
            "statistic": "agreement",
            "subgroup": "Bob",
            "estimate": 0.8,
            "low": 0.6,
            "high": 0.9,
            "dropped": 3,
        },
        {**cell, "statistic": "cohen_kappa", "subgroup": "Bob", "estimate": 0.5},
        {**cell, "statistic": "gwet_ac1", "subgroup": "Bob", "estimate": None, "reason": "one"},
        {
            **cell,
            "statistic": "cohen_kappa_linear",
            "subgroup": "Bob",
            "estimate": None,
            "reason": "two",
        },
        {
            **cell,
            "statistic": "s1_micro",
            "subgroup": "humans",
            "estimate": 0.66,
            "hits": 66,
            "n": 100,
        },
        {
            **cell,
            "statistic": "s1_macro",
            "subgroup": "humans",
            "estimate": 0.65,
            "low": 0.5,
            "high": 0.8,
        },
        {**cell, "statistic": "ceiling_ratio", "subgroup": "humans", "estimate": 1.03},
        {**cell, "statistic": "agreement_small_gap", "subgroup": "humans", "estimate": 0.4},
        {
            **cell,
            "statistic": "fleiss_kappa",
            "subgroup": "",
            "judge": "humans",
            "n": 7,
            "estimate": 0.2,
        },
        {
            **cell,
            "statistic": "krippendorff_alpha_ordinal",
            "subgroup": "",
            "judge": "humans",
            "estimate": 0.3,
        },
        {"statistic": "asr", "estimate": 0.99},
    ]
    warehouse.save([make(Estimates, *rows)], run="r1", study="quick")
    found = warehouse.query("select * from mart.agreement order by judge, other").to_dicts()
    reported = [{k: v for k, v in row.items() if v is not None and k != "study"} for row in found]
    about = {"dataset": "d", "prompt": "pair_v1", "wave": "", "simulated": True}
    judge = {**about, "judge": "offline/honest"}
    assert reported == [
        {
            **about,
            "judge": "humans",
            "fleiss_kappa": 0.2,
            "complete_items": 7,
            "alpha_ordinal": 0.3,
        },
        {
            **judge,
            "other": "Bob",
            "n": 20,
            "clusters": 4,
            "dropped": 3,
            "agreement": 0.8,
            "agreement_low": 0.6,
            "agreement_high": 0.9,
            "cohen_kappa": 0.5,
            "reason": "cohen_kappa_linear: two; gwet_ac1: one",
        },
        {
            **judge,
            "other": "humans",
            "s1_macro": 0.65,
            "s1_macro_low": 0.5,
            "s1_macro_high": 0.8,
            "s1_micro": 0.66,
            "s1_agree": 66,
            "s1_pairs": 100,
            "ceiling_ratio": 1.03,
            "agreement_small_gap": 0.4,
        },
    ]


def test_labels_of_sets_have_two_measures_more(warehouse: Warehouse, make: Make) -> None:
    cell = {"perturbation": None, "kind": None, "subgroup": "Bob"}
    rows = [
        {**cell, "statistic": "mean_jaccard", "estimate": 0.5, "low": 0.25, "high": 0.75},
        {**cell, "statistic": "label_kappa", "estimate": 0.4, "low": 0.2, "high": 0.6},
    ]
    warehouse.save([make(Estimates, *rows)], run="r1", study="quick")
    found = warehouse.query(
        "select other, mean_jaccard, mean_jaccard_low, mean_jaccard_high, label_kappa, "
        "label_kappa_low, label_kappa_high from mart.agreement"
    )
    assert found.rows() == [("Bob", 0.5, 0.25, 0.75, 0.4, 0.2, 0.6)]
