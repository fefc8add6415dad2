"""What columns and words of tables mean: for the legends of tables, and for `voirdire list`."""

from collections.abc import Iterable

from schemas.results import (
    AGREED_BY,
    BEST_DETECTED,
    BEYOND_CHANCE,
    DETECTED,
    IN_LOGITS,
    IN_MEAN_SCORES,
    IN_SDS,
    MEAN_DETECTED,
)
from tasks.kit.defaults import CALIBRATION, DEFAULTS
from tasks.reporting.wording import number

SAMPLES = "number of samples valid in both arms that the shift compares"
SHIFT = "mean preference shift (MPS) toward the changed answer"
FLOOR = "the ASR of {}, averaged over both directions"
FLAWS_DETECTED = "share of flaws detected, 1 - ASR / floor over the samples that count for both"
ADVANTAGE = (
    "chance that the judge aligns with the other people at least as well as the person left out"
)

HEADINGS = {
    "n": (
        f"{SAMPLES}; of position: votes; without perturbations: ballots",
        "mps_sham",
    ),
    "shift": (
        f"{SHIFT}, over the sham where there is one",
        "mps_sham",
    ),
    "over control": ("the shift compared with the unchanged answer", "mps"),
    "sham": ("the shift that the sham itself causes", "sham_shift"),
    "ASR": ("attack success rate", "asr"),
    "floor": (FLOOR.format("the sham"), "sham_floor"),
    "PC": ("position consistency", "position_consistency"),
    "valid": ("share of valid votes or ratings among all n", "valid_rate"),
    "first slot": (
        "share of votes for the answer shown first, without ties (.50 without position bias)",
        "first_pick_share",
    ),
    "logits": (
        (
            "effect of the first slot in logits; it replaces PC where each pair was shown in one "
            "order only, because the share of first picks then also depends on which answers were "
            "shown first"
        ),
        "position_kappa",
    ),
    "ties": ("share of ties among valid votes", "tie_rate"),
    "accuracy": (
        "share of the ballots that name the right verdict; one that cannot be read does not",
        "accuracy",
    ),
    "beyond chance": (
        (
            "how far the verdicts of the items that have a readable one are right beyond chance (a "
            "tie is half right). of N: on how many ballots, or items, it rests"
        ),
        "accuracy_beyond_chance",
    ),
    "with people": ("chance of agreeing with a person on a question (S1)", "s1_macro"),
    "MPS": ("mean preference shift, over the sham where there is one", "mps_sham"),
    "dASR": ("attack success rate above its floor", "dasr"),
    "LOS": ("log-odds shift", "los"),
    "DP": (
        f"detection power: {FLAWS_DETECTED}",
        "detection_power",
    ),
    "D": ("share of flaws detected, from mean scores", "detection_share"),
}
"""Column of a table or of the report -> its meaning, and the statistic that it shows."""


CALIBRATE_ROWS = {
    "agreement": "share of items on which judge and people give the same label",
    "by chance": "agreement that the frequencies of the labels alone would give",
    "most frequent label": "agreement of a judge that always gives people's most frequent label",
    "kappa": "Cohen's kappa: agreement beyond chance, 0 by chance and 1 at best",
    "kappa, linear": "Cohen's kappa of grades, weighted by their distance",
    "kappa, quadratic": "Cohen's kappa of grades, weighted by their squared distance",
    "TPR": "true positive rate: share of the items that people pass which the judge passes",
    "TNR": "true negative rate: share of the items that people fail which the judge fails",
    "Spearman": "rank correlation of grades",
    "Kendall": "rank correlation of grades: Kendall's tau-b, which allows for ties",
    "mean error": "mean distance of the judge's grade from people's",
    "bias": "pass rate or mean grade of the judge minus people's",
    "people, mean error": "mean distance of each person's grade from the mean of the others",
    "PPI++": "prediction-powered inference: the judge's mean over all items, corrected by its "
    "errors on the items that people labelled, which must be a random sample",
    "Rogan-Gladen": "the judge's pass rate over all items, corrected by its TPR and TNR, which "
    "must be the same on labelled and other items",
    "alt_test": "alternative annotator test: whether the judge may replace human annotators, by "
    "its winning rate, which must be at least `least_winning_rate` of the calibration, by default "
    f"{number(CALIBRATION.least_winning_rate)}",
    "people": "agreement of each person with the other people, each left out in turn",
    "p vs rest": "adjusted p-value of the difference between a slice and all other items",
    "passes": "the judge may replace people: its winning rate is at least `least_winning_rate`",
    "fails": "the winning rate is lower, so it is not shown that the judge may replace people; "
    "more items may show it",
    "not testable": "the test could not be run, for the reason that is printed",
    "doubtful": "rests on too little, for the reason that is printed: fewer than three people, "
    "labels that are all equal, or labels that people do not use",
    "may replace people": "passes the alternative annotator test (`alt_test`)",
    "winning rate": "share of people for whom the test shows that the judge is worse by less than "
    "epsilon",
    "AP": f"advantage probability: {ADVANTAGE}",
    "human AP": "chance that the person aligns with the others at least as well as the judge",
    "tied": "chance that judge and person align equally well with the others",
    "ceiling": "agreement of people with each other, on the items that the judge labelled too",
    "ratio": "the judge's agreement with single people, divided by the ceiling",
    "alpha": "Krippendorff's alpha of the people and the judge",
}
SOURCES = {
    "shifts": "source: the spread is that of the judge's shifts on so many samples of earlier "
    "audits.",
    "other perturbations": "other perturbations: no earlier audit has those of this study.",
    " at ": "at N votes: these audits had N votes per pair; the spread is converted.",
}
"""Part of the source of a spread in `plan` -> what it means."""
CHANGED = (
    "how far the {} differ between two waves on the same prompts: 0 if no more than within a wave, "
    "2 if each wave always repeats itself and the two never agree"
)
TABLE_WORDS: dict[str, dict[str, str]] = {
    "audit": {
        "questions": "independent questions, or clusters of items (`clusters` in the marts)",
        "difference": "difference of two shifts (`contrast` in mart.contrasts)",
        "limit": "threshold of a gate (`tolerance` in mart.scorecard), set by the study",
        "suspect": "a change since the baseline that one wave shows and the next must confirm",
        "alert": "a change since the baseline that the judge's next wave confirmed",
        "quiet": "a comparison of two waves that raised no suspicion; only the gate drift says "
        "whether a change is excluded",
    },
    "calibrate": CALIBRATE_ROWS,
    "plan": {
        "cast": "votes in the warehouse",
        "calls": "votes still to be asked for",
        "at most": "what a budget reserves",
        "with sham": "samples whose sham has the size of the perturbed text",
        "dropped": "texts that failed a validity check, or that no template could change",
        "smallest": "the smallest shift that the samples detect with 80 % power (raw p below .05)",
        "tokens in": "tokens of the prompts of these calls",
        "out": "tokens of their replies",
        "USD": "price of the calls; unknown where a judge has no price",
        "samples": "pairs of answers that the perturbation changes",
        f"samples for {number(DEFAULTS.minimum_shift)}": "samples that detect the smallest "
        "relevant shift (`minimum_shift`) with 80 % power",
        "6 votes": "the smallest shift with as many calls, at 6 votes per pair",
        "typical judge": "stands for a judge with too few votes so far: its spread is assumed",
        "spread": "standard deviation of the shifts of a judge, measured or assumed (`source`)",
        "source": "the results that the spread comes from: earlier shifts of this judge, by how "
        "many samples, or a typical judge",
    },
    "sql --ask cost_per_judge_per_night": {
        "night": "day (UTC) of the first vote of a wave or, where votes have no wave, of the votes",
    },
    "sql --ask what_drifted": {
        "since": "the wave that made a change suspect",
        "rating_drift": "change of the mean rating, pass rate or share of labels chosen, on "
        "unperturbed answers",
        "rating_shift_drift": "change of the shift of ratings under a perturbation",
        "text_drift": CHANGED.format("texts of replies, white space and case aside,"),
        "token_drift": CHANGED.format("probabilities of first tokens"),
    },
    "gate": {
        "invalid replies": "share of the ballots whose reply has no verdict, with its limit",
        "gap": "share of votes for the answer shown first, minus one half",
        IN_SDS: "shift of grades in standard deviations of the grades of the judge",
        IN_LOGITS: "size of a bias in logits, which decides where pairs are too easy",
        DETECTED: "share of flaws detected: DP, or D of the ratings of single answers",
        IN_MEAN_SCORES[DETECTED]: "D, where DP has too few questions or its floor is low",
        BEST_DETECTED: "best share of flaws detected (DP) over the kinds of flaws",
        MEAN_DETECTED: "share of flaws detected (DP), as the mean over all kinds of flaws",
        IN_MEAN_SCORES[BEST_DETECTED]: "best D over the kinds of flaws",
        IN_MEAN_SCORES[MEAN_DETECTED]: "the mean of D over all kinds of flaws, used "
        "where the mean of DP cannot decide",
        "agreement lost": "agreement of judge and people, compared with people among themselves: "
        "the share that is lost",
        "Bennett's S": "agreement beyond chance of two answers: 2 s - 1, s being the share of "
        "right verdicts, with a tie as half a right one",
        BEYOND_CHANCE: "kappa, or the rank correlation of grades, where each item has one label; "
        "of pairs with a right verdict, Bennett's S",
        AGREED_BY["rating_kappa"]: "Cohen's kappa of verdicts or labels with people's",
        AGREED_BY["rating_correlation"]: "Spearman's rank correlation of grades with people's, "
        "which no difference of level changes; `calibrate` also shows the kappa of grades",
        AGREED_BY["accuracy_beyond_chance"]: "2 s - 1 of pairs, s being the share of right "
        "verdicts, with a tie as half a right one",
    },
    "report --number": {
        "least margin": "the smallest share of a tolerance left, over the gates of a judge, at the "
        "worse end of the interval; below 0: exceeded",
    },
    "measure": {
        "estimate": "the number that a statistic gives, with its 95 % interval beside it",
        "p adj.": "the p-value, adjusted over the family of tests",
        "value": "what the gate compares with its limit (`tolerance`), with its interval",
        "why": "number of the footnote that gives the reason",
        "rated by": "a judge, or a person",
    },
}
"""Command -> word of its tables -> its meaning."""


def explained(names: Iterable[str], command: str = "") -> str:
    """Return a sentence about each column; about a word of the tables of ``command`` if given."""
    known = TABLE_WORDS[command] if command else {name: row[0] for name, row in HEADINGS.items()}
    return " ".join(f"{name}: {known[name]}." for name in names)


def explained_sources(sources: Iterable[str]) -> str:
    """Say what sources of spreads mean if they are earlier audits, each sentence after a space."""
    named = " ".join(sources)
    return "".join(f" {text}" for part, text in SOURCES.items() if part in named)
