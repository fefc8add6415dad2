from collections.abc import Callable

from schemas.results import Estimates
from warehouse.store import Saving, Warehouse

Make = Callable[..., Saving]
ALL = {"perturbation": None, "kind": None}


def test_accuracy_in_each_order(warehouse: Warehouse, make: Make) -> None:
    shares = {
        "accuracy": 0.6, "accuracy_12": 0.5, "accuracy_21": 0.7, "accuracy_valid": 0.65,
        "both_right": 0.4, "order_agreement": 0.8, "order_agreement_llmbar": 0.75,
    }  # fmt: skip
    rows = [
        {**ALL, "statistic": name, "estimate": share, "low": 0.1, "high": 0.9, "n": 20,
         "hits": round(share * 20)}
        for name, share in shares.items()
    ]  # fmt: skip
    kappa = {**ALL, "statistic": "order_kappa", "estimate": 0.3}
    other = {"statistic": "asr", "estimate": 0.99}
    warehouse.save([make(Estimates, *rows, kappa, other)], run="r1", study="quick")
    assert warehouse.query("select * from mart.accuracy").to_dicts() == [
        {
            "study": "quick", "dataset": "d", "judge": "offline/honest", "prompt": "pair_v1",
            "wave": "", "perturbation": None, "simulated": True, "low": 0.1, "high": 0.9,
            "hits": 12, "n": 20, "order_kappa": 0.3, **shares,
        }
    ]  # fmt: skip
