import base64
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from booth import _booth
from booth._booth import Booth
from booth._voters import STILL_OPEN, Seat, write_choice
from schemas.judging import Votes
from tasks.judging.people import CHOSEN
from warehouse.store import Warehouse, WarehouseError

Open = Callable[..., Booth]
Audited = Callable[..., Warehouse]


def cast(booth: Booth, seat: Seat, label: str = "Answer 1", back: int = 0) -> str | None:
    shown = booth.show(seat, back)
    assert shown is not None
    return booth.vote(seat, shown.nonce, label, 0.0)


def votes(warehouse: Warehouse) -> list[tuple[str, str, str]]:
    sql = """
        select judge, raw, choice from votes join ballots using (ballot_id)
        where starts_with(judge, 'people/') order by cast_at
    """
    return warehouse.query(sql).rows()


def test_a_choice_is_a_vote_like_those_of_models(audited: Audited, opened: Open) -> None:
    warehouse = audited()
    booth = opened(warehouse)
    seat = booth.seat("ann")
    for label in CHOSEN:
        assert cast(booth, seat, label)
    assert votes(warehouse) == []
    booth.hand_in(seat)
    assert booth.close()
    assert votes(warehouse) == [("people/ann", label, choice) for label, choice in CHOSEN.items()]
    run = warehouse.query("select * from runs where flow = 'booth'").to_dicts()[0]
    assert (run["state"], run["asked"], run["study"]) == ("completed", 4, "quick")
    assert warehouse.query(
        "select prompt, wave, repeat from ballots where judge = 'people/ann'"
    ).unique().rows() == [("booth_v1", "", 0)]


def test_a_page_serves_once(audited: Audited, opened: Open) -> None:
    booth = opened(audited())
    ann, ben = booth.seat("ann"), booth.seat("ben")
    shown = booth.show(ann, 0)
    assert shown
    assert booth.vote(ben, shown.nonce, "Tie", 0.0) is None
    assert booth.vote(ann, shown.nonce, "Both", 0.0) is None
    assert booth.vote(ann, shown.nonce, "Tie", 0.0)
    assert booth.vote(ann, shown.nonce, "Answer 2", 0.0) is None
    assert [choice.label for choice in ann.chosen.values()] == ["Tie"]


def test_a_page_of_ones_own_making_is_refused(audited: Audited, opened: Open) -> None:
    booth = opened(audited())
    seat = booth.seat("ann")
    shown = booth.show(seat, 0)
    assert shown
    packed, _, signature = shown.nonce.partition(".")
    reported = json.loads(base64.urlsafe_b64decode(packed))
    forged = base64.urlsafe_b64encode(json.dumps([seat.order[3], *reported[1:]]).encode()).decode()
    for nonce in (f"{forged}.{signature}", packed, "", ".", "é.é", f"{packed}.{signature}x"):
        assert booth.vote(seat, nonce, "Tie", 0.0) is None
    assert seat.chosen == {}


def test_going_back_changes_the_choice_and_not_the_place(audited: Audited, opened: Open) -> None:
    booth = opened(audited())
    seat = booth.seat("ann")
    first, second = cast(booth, seat, "Answer 1"), cast(booth, seat, "Tie")
    shown = booth.show(seat, 2)
    assert shown
    assert (shown.place, shown.total, shown.before, shown.can_go_back) == (1, 12, "Answer 1", False)
    assert booth.show(seat, 3) is None
    assert cast(booth, seat, "Answer 2", back=2) == first
    assert {b: c.label for b, c in seat.chosen.items()} == {first: "Answer 2", second: "Tie"}
    shown = booth.show(seat, 0)
    assert shown
    assert (shown.place, shown.before) == (3, "")


def test_the_last_choices_stay_open_and_those_before_become_votes(
    audited: Audited, opened: Open
) -> None:
    warehouse = audited(8)
    booth = opened(warehouse)
    seat = booth.seat("ann")
    for _ in range(2 * STILL_OPEN):
        cast(booth, seat)
    assert len(seat.final_ballots()) == STILL_OPEN
    _booth.save_choices(booth.writer, seat, booth.lock)
    assert len(votes(warehouse)) == len(seat.changeable) == STILL_OPEN
    assert booth.show(seat, STILL_OPEN) is not None
    assert booth.show(seat, STILL_OPEN + 1) is None
    assert seat.answered == 2 * STILL_OPEN


def test_what_is_on_its_way_into_the_warehouse_is_not_changed(
    audited: Audited, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    booth = opened(audited())
    seat = booth.seat("ann")
    cast(booth, seat)
    shown = booth.show(seat, 1)
    assert shown
    taken: list[Any] = []

    def meanwhile(*_: object) -> int:
        taken.append(booth.vote(seat, shown.nonce, "Tie", 0.0))
        raise WarehouseError("kept busy")

    monkeypatch.setattr(booth.writer, "save", meanwhile)
    assert not booth.close()
    assert taken == [None]
    # It stays where it was, and can be changed again.
    assert booth.vote(seat, shown.nonce, "Tie", 0.0)


def test_a_booth_that_opens_again_knows_everything(audited: Audited) -> None:
    warehouse = audited()
    with _booth.open_booth(warehouse, "quick", {"limit": 6}) as booth:
        seat = booth.seat("ann")
        session = booth.open_session(seat, None)
        order = seat.order
        chosen = [cast(booth, seat, "Tie"), cast(booth, seat, "Answer 2")]
        token, page = booth.token(seat), booth.slug(seat)
        nonce = booth.show(seat, 0)
    with _booth.open_booth(warehouse, "quick", {}) as booth:
        seat = booth.seats["ann"]
        assert (booth.token(seat), booth.slug(seat), seat.order) == (token, page, order)
        assert booth.knows(seat, session)
        assert [*seat.chosen] == chosen
        # The page that was open when the booth ended still serves.
        assert nonce
        assert booth.vote(seat, nonce.nonce, "Answer 1", 0.0) == order[2]
        assert len(seat.order) == 6
    with _booth.open_booth(warehouse, "quick", {"limit": None}) as booth:
        seat = booth.seats["ann"]
        assert len(seat.order) == 12
        assert set(order) < set(seat.order)
        assert seat.answered == 3


def test_votes_that_were_saved_just_before_a_crash_are_not_asked_again(audited: Audited) -> None:
    warehouse = audited()
    with _booth.open_booth(warehouse, "quick", {}) as booth:
        seat = booth.seat("ann")
        ballot = cast(booth, seat)
        booth.close()
        write_choice(booth.journal, seat, str(ballot), "Tie", 9.0)
    with _booth.open_booth(warehouse, "quick", {}) as booth:
        seat = booth.seats["ann"]
        assert (seat.saved, seat.chosen) == ({ballot}, {})
        assert booth.close()
    assert votes(warehouse) == [("people/ann", "Answer 1", "first")]


def test_links(audited: Audited, opened: Open) -> None:
    booth = opened(audited())
    ann, ben = booth.seat("ann"), booth.seat("ben")
    token = booth.token(ann)
    assert len(token) == 43
    assert booth.seat_of_token(token) is ann
    assert booth.seat_of_token(token[:-1]) is booth.seat_of_token(booth.slug(ann)) is None
    session = booth.open_session(ann, None)
    assert session
    # Reused: in another browser, and with a session of somebody else.
    assert (
        booth.open_session(ann, None)
        is booth.open_session(ann, booth.open_session(ben, None))
        is None
    )
    assert booth.open_session(ann, session) == session
    page = booth.slug(ann)
    assert booth.seat_of_page(page, session) is ann
    assert booth.seat_of_page(page, None) is booth.seat_of_page(page, "other") is None
    booth.renew("ann")
    assert booth.seat_of_token(token) is booth.seat_of_page(page, session) is None
    assert booth.seat_of_token(booth.token(ann)) is ann
    with pytest.raises(ValueError, match=r"'eve' is not a voter of quick\. Voters: ann, ben"):
        booth.renew("eve")


def test_neither_tokens_nor_sessions_are_kept(audited: Audited, opened: Open) -> None:
    warehouse = audited()
    booth = opened(warehouse)
    seat = booth.seat("ann")
    session = booth.open_session(seat, None)
    cast(booth, seat)
    booth.close()
    kept = [*warehouse.path.parent.rglob("*.jsonl"), warehouse.path]
    assert len(kept) == 2
    for file in kept:
        assert session
        assert session.encode() not in file.read_bytes()
        assert booth.token(seat).encode() not in file.read_bytes()


def test_choices_on_pairs_that_are_gone_are_reported(
    audited: Audited, capsys: pytest.CaptureFixture[str]
) -> None:
    warehouse = audited()
    with _booth.open_booth(warehouse, "quick", {}) as booth:
        seat = booth.seat("ann")
        write_choice(booth.journal, seat, "f" * 32, "Tie", 9.0)
    with _booth.open_booth(warehouse, "quick", {}) as booth:
        assert booth.seats["ann"].chosen == {}
    assert (
        "1 choices of ann cannot be saved: study quick no longer has their pairs"
        in capsys.readouterr().err
    )


def test_names_are_checked(audited: Audited, opened: Open) -> None:
    booth = opened(audited())
    for name in ("", "a b", "ann/eve", "<b>", "x" * 65):
        with pytest.raises(ValueError, match="1 to 64 letters"):
            booth.seat(name)


@pytest.mark.parametrize(
    ("refused", "said"),
    [
        (
            {"perturbations": ["rich_content"]},
            r"no perturbation 'rich_content' in the study\. Known: padding",
        ),
        ({"limit": 2}, r"The smallest is --limit 3; with --once.* it is 1\."),
        (
            {"arms": []},
            r"no pair is left to show \(arms: none; perturbations: all\)\. Choose other --arms",
        ),
    ],
)
def test_what_cannot_be_shown_is_not_kept(
    audited: Audited, refused: dict[str, Any], said: str
) -> None:
    warehouse = audited()
    with _booth.open_booth(warehouse, "quick", {"limit": 6}) as booth:
        booth.seat("ann")
    with pytest.raises((LookupError, ValueError), match=said):
        _booth.open_booth(warehouse, "quick", refused).__enter__()
    with _booth.open_booth(warehouse, "quick", {}) as booth:
        assert len(booth.seats["ann"].order) == 6


def test_control_pairs_alone_may_follow_a_perturbation(audited: Audited) -> None:
    # as docs/how-to/booth.md advises after its first example, which names a perturbation
    warehouse = audited()
    with _booth.open_booth(warehouse, "quick", {"perturbations": ["padding"]}) as booth:
        samples = len(booth.seat("ann").order) // 3
    with _booth.open_booth(warehouse, "quick", {"arms": ["control"]}) as booth:
        shown = booth.pairs.join(booth.seats["ann"].draw.ballots, on="pair_id", how="semi")
    assert shown["arm"].to_list() == ["control"] * samples


def test_a_study_that_was_never_audited_is_named(audited: Audited) -> None:
    warehouse = audited()
    said = r"no audit of study 'x' in .*\. Known: quick\. Run `voirdire audit x` first"
    with pytest.raises(LookupError, match=said):
        _booth.open_booth(warehouse, "x", {}).__enter__()


def test_when_a_vote_was_cast(audited: Audited, opened: Open) -> None:
    warehouse = audited()
    booth = opened(warehouse)
    seat = booth.seat("ann")
    cast(booth, seat)
    booth.close()
    read = warehouse.read(Votes).filter(finish_reason="timed").to_dicts()
    (vote,) = read
    assert datetime.now(UTC) - vote["cast_at"] < timedelta(minutes=1)
    assert (vote["attempts"], vote["model"], vote["cost_usd"]) == (1, None, None)
