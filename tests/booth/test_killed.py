"""A booth that is killed while people are sending their choices."""

import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import httpx
from waiting import PATIENCE_SECONDS

from warehouse.store import Warehouse

Audited = Callable[..., Warehouse]
Serve = Callable[..., Any]
TOTAL = 60
NONCE = re.compile(r'name="nonce" value="([^"]+)"')
ACTION = re.compile(r'<form method="post" action="([^"]+)"')
PLACE = re.compile(rf'role="status">(\d+) of {TOTAL}<')
LABELS = ("Answer 1", "Tie", "Answer 2", "Not familiar")


class Voter(threading.Thread):
    """Somebody who chooses as fast as the pages come, until none comes any more."""

    def __init__(self, link: str) -> None:
        super().__init__(daemon=True)
        self._link = link
        self.sent: list[str] = []
        self.acknowledged = 0

    def run(self) -> None:
        with httpx.Client(follow_redirects=True, timeout=PATIENCE_SECONDS) as client:
            page = client.get(self._link)
            page = client.post(page.url, headers=_own(page))
            try:
                while place := PLACE.search(page.text):
                    self.acknowledged = int(place[1]) - 1
                    self.sent.append(LABELS[len(self.sent) % 4])
                    form = {"nonce": _found(page, NONCE), "seen": "9", "choice": self.sent[-1]}
                    page = client.post(_address(page, ACTION), data=form, headers=_own(page))
            except httpx.TransportError:
                return


def _found(page: httpx.Response, what: re.Pattern[str]) -> str:
    found = what.search(page.text)
    assert found, page.text
    return found[1]


def _address(page: httpx.Response, what: re.Pattern[str]) -> str:
    return str(page.url.join(_found(page, what)))


def _own(page: httpx.Response) -> dict[str, str]:
    return {"Origin": f"{page.url.scheme}://{page.url.netloc.decode()}"}


def test_two_voters_at_once_lose_nothing_that_was_acknowledged(
    audited: Audited, served: Serve, hosted: Serve
) -> None:
    warehouse = audited(20)
    booth = served(warehouse, "--voter", "ann", "--voter", "ben", "--limit", str(TOTAL))
    voters = {name: Voter(link) for name, link in booth.links.items()}
    for voter in voters.values():
        voter.start()
    # Past the ten choices that stay open, so that some are on their way into the warehouse.
    while any(voter.acknowledged < 15 for voter in voters.values()):
        assert all(voter.is_alive() for voter in voters.values())
        time.sleep(0.01)
    booth.kill()
    for voter in voters.values():
        voter.join(60)
        assert not voter.is_alive()
        assert voter.acknowledged < TOTAL
    again = hosted(warehouse, "quick")
    kept = {name: int(many) for name, many in re.findall(rf"(\w+) +(\d+) of {TOTAL}", again.said)}
    again.stop()
    rows = warehouse.query(
        "select judge, raw from votes join ballots using (ballot_id) "
        "where starts_with(judge, 'people/') order by cast_at"
    ).rows()
    for name, voter in voters.items():
        # The one that was on its way may have arrived; nothing before it is missing.
        assert kept[name] in {voter.acknowledged, voter.acknowledged + 1}
        mine = [raw for judge, raw in rows if judge == f"people/{name}"]
        assert mine == voter.sent[: kept[name]]
    ballots = warehouse.query("select ballot_id from votes")["ballot_id"]
    assert max(Counter(ballots).values()) == 1
