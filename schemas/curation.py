"""Frames of a study's source data: questions, answers, perturbations."""

import pandera.polars as pa

from schemas.frame import Fact, Frame, counted, name, optional, share

KINDS = ["promote", "detract"]
VERDICTS = ["anchor", "tie", "target"]


class Questions(Fact, table="questions", key=("question_id",)):
    """One row per question."""

    question_id: str = name("dataset and the id of the question in it, as in mt_bench/81")
    dataset: str = name("name of the dataset")
    category: str = name("group of questions, such as a Bloom level", nullable=True)
    question: str = name("the question's text")
    reference: str = name("list of facts, or a reference answer", nullable=True)
    context: str = name("what the answer should rest on, such as retrieved texts", nullable=True)


class Answers(Fact, table="answers", key=("answer_id",), references={"question_id": "questions"}):
    """One row per unperturbed answer."""

    answer_id: str = name("question_id followed by /a1 or /a2; /a2 is the target")
    question_id: str = name("the question")
    slot: int = pa.Field(isin=[1, 2], description="1 or 2: position in the dataset, not on screen")
    author: str = name("author of the answer", nullable=True)
    answer: str = name("the answer's text")


class Versions(
    Fact, table="versions", key=("answer_id", "perturbation"), references={"answer_id": "answers"}
):
    """One row per perturbed version that comes with a dataset."""

    answer_id: str = name("the answer that was perturbed (the target)")
    perturbation: str = name("name of the perturbation")
    version: str = name("the perturbed text")


class Known(Frame, key=("sample",)):
    """One row per sample with what its dataset knows of the pair; kept in the vote log."""

    sample: str = name("a question with its anchor and target: the target's answer_id")
    anchor_author: str = name("model that wrote the anchor; null if unknown", nullable=True)
    target_author: str = name("model that wrote the target; null if unknown", nullable=True)
    label: str = optional("the correct verdict; null if unknown", isin=VERDICTS)
    human_score: float = share(
        "people's score of the pair: 0 anchor, 1 target; null if not labelled", nullable=True
    )
    label_chance: float = optional(
        "probability that the pair was selected for labelling by people", gt=0, le=1
    )
    human_values: str = name(
        "what people say of the unperturbed target, as JSON: criterion, or label (pass or fail) "
        "and grade for the whole answer -> grade, 1 for pass and 0 for fail; null if not labelled",
        nullable=True,
    )
    category: str = name(
        "group of questions by a column of the user's choice; null for the dataset's own category",
        nullable=True,
    )
    turn: str = name("turn of the conversation that is judged; null if unknown", nullable=True)


class Perturbations(Fact, table="perturbations", key=("perturbation", "recipe")):
    """One row per perturbation and version of its recipe."""

    perturbation: str = name("name of the perturbation")
    recipe: int = pa.Field(
        ge=1, description="version of the recipe; raised when its output changes"
    )
    kind: str = pa.Field(isin=KINDS, description="promote (should change nothing) or detract")
    bias: str = name("the bias that the perturbation tests")
    source: str = name("paper and section")


class PerturbedAnswers(
    Fact,
    table="perturbed_answers",
    key=("answer_id", "perturbation", "recipe", "seed"),
    references={"answer_id": "answers"},
):
    """One row per answer, perturbation, recipe and seed."""

    answer_id: str = name("the answer that was perturbed (the target)")
    question_id: str = name("its question")
    perturbation: str = name("name of the perturbation")
    recipe: int = pa.Field(ge=1, description="version of the recipe")
    seed: int = counted("random seed of the template and of the sham")
    made_by: str = pa.Field(
        isin=["dataset", "template"], description="origin of the text: a template or a dataset"
    )
    perturbed: str = name("the perturbed text; null if none could be made", nullable=True)
    sham: str = name("the answer after a meaning-free edit of the same size", nullable=True)
    length_ratio: float = optional(
        "length of the perturbed text divided by the length of the original", gt=0
    )
    sham_ratio: float = optional("length of the sham divided by the perturbed text's length", gt=0)
    words_kept: float = share(
        "share of the original's words that are kept, in order", nullable=True
    )
    failure: str = name("first validity check that failed; null if valid", nullable=True)
    sham_failure: str = name("why there is no valid sham; null if there is one", nullable=True)
