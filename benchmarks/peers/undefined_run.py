"""Scores given verdicts with a peer's own metrics; runs in the peer's environment.

    python undefined_run.py PEER < CASES > VALUES

CASES is a JSON list of ``undefined.Case`` as objects. Whatever a peer asks its model is answered
from the case, so that the peer's own function makes the number. VALUES is a JSON object: by case
and by the metric's id in labeler, a number, ``NaN``, or the name of the error.
"""

# ruff: noqa: ANN401, ARG002 - the peers' classes and the signatures that they call
# mypy: disable-error-code="import-not-found, import-untyped, misc"
# Each peer is installed in an environment of its own only.

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import math
import sys
import types
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple

Case = dict[str, Any]
Scores = Iterator[tuple[str, Callable[[], Any]]]
"""The id of each metric in labeler, and a call that returns the peer's value."""
_QUESTION = "Q?"


class Unanswered(BaseException):
    """A question for which the case has no answer; no peer catches it."""


class Answers:
    """Answers to the questions of one metric, by the class that each is to be an object of."""

    def __init__(self, **answers: list[dict[str, Any]]) -> None:
        self._left = defaultdict(list, {name: list(given) for name, given in answers.items()})

    def next(self, schema: type) -> Any:
        """Return the next answer of a class."""
        if not self._left[schema.__name__]:
            raise Unanswered(schema.__name__)
        return schema(**self._left[schema.__name__].pop(0))


class Asked(NamedTuple):
    """One metric of a peer.

    Attributes:
        id: the metric in labeler.
        name: the peer's class.
        answers: to its questions, by the class of each.
        mode: its mode, if it has several.
    """

    id: str
    name: str
    answers: dict[str, list[dict[str, Any]]]
    mode: str = ""


def _texts(of: list[Any], letter: str) -> list[str]:
    return [f"{letter}{number}" for number in range(len(of))]


def _ragas_asked(case: Case) -> Iterator[Asked]:
    """Yield RAGAS's metrics of rankings and of claims."""
    claims, expected = case["claims"], case["reference"]
    said, wanted = _texts(claims, "R"), _texts(expected, "G")
    for id_, name, flags in (
        ("context_precision", "ContextPrecision", case["relevant"]),
        ("context_utilization_precision", "ContextUtilization", case["used"]),
    ):
        useful = [{"reason": "", "verdict": int(flag)} for flag in flags]
        yield Asked(id_, name, {"ContextPrecisionOutput": useful})
    entailed = _judged(said, [one["verdict"] == "entailment" for one in claims])
    statements = {"StatementGeneratorOutput": [{"statements": said}]}
    yield Asked(
        "faithfulness:claim", "Faithfulness", {**statements, "NLIStatementOutput": [entailed]}
    )
    classified = [
        {"statement": text, "reason": "", "attributed": int(bool(one["documents"]))}
        for text, one in zip(wanted, expected, strict=True)
    ]
    recalled = {"ContextRecallOutput": [{"classifications": classified}]}
    yield Asked("context_recall", "ContextRecall", recalled)
    correct = _judged(said, [one["correct"] for one in claims])
    found = _judged(wanted, [one["found"] for one in expected])
    # Claims of the response are cut, then those of the reference; each list that is not empty is
    # compared at once.
    cut = {
        "ClaimDecompositionOutput": [{"claims": said}, {"claims": wanted}],
        "NLIStatementOutput": [lot for lot in (correct, found) if lot["statements"]],
    }
    for mode in ("precision", "recall", "f1"):
        yield Asked(f"claim_{mode}", "FactualCorrectness", cut, mode)
    in_documents = [
        _judged(texts, [number in one["documents"] for one in lot])
        for number in range(len(case["relevant"]))
        for texts, lot in ((wanted, expected), (said, claims))
    ]
    noise = {
        "StatementGeneratorOutput": [{"statements": wanted}, {"statements": said}],
        "StatementFaithfulnessOutput": [*in_documents, correct],
    }
    for mode in ("relevant", "irrelevant"):
        yield Asked(f"noise_sensitivity_{mode}", "NoiseSensitivity", noise, mode)


def _judged(texts: list[str], verdicts: list[Any]) -> dict[str, Any]:
    """Return RAGAS's list of judged statements."""
    both = zip(texts, verdicts, strict=True)
    return {"statements": [{"statement": t, "reason": "", "verdict": int(v)} for t, v in both]}


def ragas_scores(case: Case) -> Scores:
    """RAGAS, the collections form."""
    from ragas.llms.base import InstructorBaseRagasLLM  # noqa: PLC0415
    from ragas.metrics import collections  # noqa: PLC0415

    class Judge(InstructorBaseRagasLLM):
        def __init__(self, answers: Answers) -> None:
            self._answers = answers

        def generate(self, prompt: str, response_model: type) -> Any:
            return self._answers.next(response_model)

        async def agenerate(self, prompt: str, response_model: type) -> Any:
            return self._answers.next(response_model)

    given = {
        "user_input": _QUESTION,
        "response": case["response"],
        "reference": "G.",
        "retrieved_contexts": _texts(case["relevant"], "D"),
    }

    def score(asked: Asked) -> Any:
        mode = {"mode": asked.mode} if asked.mode else {}
        metric = getattr(collections, asked.name)(Judge(Answers(**asked.answers)), **mode)
        inputs = {name: given[name] for name in signature(metric.ascore).parameters}
        return asyncio.run(metric.ascore(**inputs)).value

    for asked in _ragas_asked(case):
        yield asked.id, partial(score, asked)


def _deepeval_asked(case: Case) -> Iterator[Asked]:
    """Yield DeepEval's metrics."""

    def verdicts(found: Iterable[Any]) -> list[dict[str, Any]]:
        words = [one if isinstance(one, str) else "yes" if one else "no" for one in found]
        return [{"verdicts": [{"verdict": w, "reason": "", "statement": ""} for w in words]}]

    claims, relevant = case["claims"], case["relevant"]
    said = _texts(claims, "R")
    words = {"entailment": "yes", "neutral": "borderline", "contradiction": "no"}
    against = {n for one in claims for n in one["against"]}
    yield Asked("context_precision", "ContextualPrecision", {"Verdicts": verdicts(relevant)})
    answers: dict[str, list[dict[str, Any]]] = {
        "Truths": [{"truths": []}],
        "Claims": [{"claims": said}],
        "Verdicts": verdicts(words[one["verdict"]] for one in claims),
    }
    yield Asked("faithfulness:claim", "Faithfulness", answers)
    agreeing = verdicts(n not in against for n in range(len(relevant)))
    yield Asked("hallucination_contexts", "Hallucination", {"Verdicts": agreeing})
    on_topic = verdicts(one["on_topic"] for one in claims)
    answers = {"Statements": [{"statements": said}], "Verdicts": on_topic}
    yield Asked("answer_relevancy", "AnswerRelevancy", answers)
    found = verdicts(bool(one["documents"]) for one in case["reference"])
    yield Asked("context_recall", "ContextualRecall", {"Verdicts": found})
    each = [verdicts([one])[0] for one in relevant]
    yield Asked("context_relevancy", "ContextualRelevancy", {"ContextualRelevancyVerdicts": each})


def deepeval_scores(case: Case) -> Scores:
    """DeepEval, with an answer for each schema that it asks for."""
    from deepeval import metrics  # noqa: PLC0415 - reads its settings when imported
    from deepeval.models import DeepEvalBaseLLM  # noqa: PLC0415
    from deepeval.test_case import LLMTestCase  # noqa: PLC0415

    class Judge(DeepEvalBaseLLM):
        def __init__(self, answers: Answers) -> None:
            self._answers = answers
            super().__init__("none")

        def load_model(self) -> Any:
            return self

        def generate(self, prompt: str, schema: type) -> Any:
            return self._answers.next(schema)

        async def a_generate(self, prompt: str, schema: type) -> Any:
            return self._answers.next(schema)

        def get_model_name(self) -> str:
            return "none"

    documents = _texts(case["relevant"], "D")
    record = LLMTestCase(
        input=_QUESTION,
        actual_output=case["response"],
        expected_output="G.",
        retrieval_context=documents,
        context=documents,
    )

    def score(asked: Asked) -> Any:
        judge = Judge(Answers(**asked.answers))
        kind = getattr(metrics, f"{asked.name}Metric")
        metric = kind(model=judge, include_reason=False, async_mode=False)
        return metric.measure(record, _show_indicator=False)

    for asked in _deepeval_asked(case):
        yield asked.id, partial(score, asked)


OF_RAGCHECKER = {
    "precision": "claim_precision",
    "recall": "claim_recall",
    "f1": "claim_f1",
    "claim_recall": "context_recall",
    "context_precision": "context_precision_claims",
    "context_utilization": "context_utilization_claims",
    "noise_sensitivity_in_relevant": "noise_sensitivity_relevant",
    "noise_sensitivity_in_irrelevant": "noise_sensitivity_irrelevant",
    "hallucination": "hallucination_incorrect",
    "self_knowledge": "self_knowledge",
    "faithfulness": "faithfulness:claim",
}
"""Names of RAGChecker's metrics, and the metric here of each."""


def ragchecker_scores(case: Case) -> Scores:
    """RAGChecker's formulas, without the modules that load its models."""
    if "ragchecker" not in sys.modules:
        (place,) = (Path(one, "ragchecker") for one in sys.path if Path(one, "ragchecker").is_dir())
        sys.modules["ragchecker"] = types.ModuleType("ragchecker")
        sys.modules["ragchecker"].__path__ = [str(place)]
    container, computation = (
        importlib.import_module(f"ragchecker.{name}") for name in ("container", "computation")
    )

    def words(flags: list[bool]) -> list[str]:
        return ["Entailment" if flag else "Neutral" for flag in flags]

    def by_document(lot: list[dict[str, Any]]) -> list[list[str]]:
        every = range(len(case["relevant"]))
        return [words([n in one["documents"] for n in every]) for one in lot]

    def score(name: str, result: Any) -> Any:
        computation.METRIC_FUNC_MAP[name](result)
        return result.metrics[name]

    claims, expected = case["claims"], case["reference"]
    for theirs, ours in OF_RAGCHECKER.items():
        result = container.RAGResult(
            query_id="r",
            query=_QUESTION,
            gt_answer="G.",
            response=case["response"],
            answer2response=words([one["correct"] for one in claims]),
            response2answer=words([one["found"] for one in expected]),
            retrieved2response=by_document(claims),
            retrieved2answer=by_document(expected),
        )

        yield ours, partial(score, theirs, result)


def trulens_scores(case: Case) -> Scores:
    """TruLens, whose groundedness alone is a share of statements."""
    from trulens.core.feedback.feedback import GroundednessConfigs  # noqa: PLC0415
    from trulens.feedback.llm_provider import LLMProvider  # noqa: PLC0415

    claims = case["claims"]
    said = _texts(claims, "R")

    class Endpoint:
        def run_in_pace(self, func: Any, messages: list[dict[str, str]], **_: Any) -> str:
            splitting = messages[1]["content"] == case["response"]
            return case["response"] if splitting else repr(said)

    class Judge(LLMProvider):
        def generate_score_and_reasons(self, *_: Any, user_prompt: str, **__: Any) -> Any:
            (claim,) = (c for c, text in zip(claims, said, strict=True) if text in user_prompt)
            return float(claim["verdict"] == "entailment"), {"reason": ""}

    judge = Judge.model_construct(model_engine="none")
    object.__setattr__(judge, "endpoint", Endpoint())
    configs = GroundednessConfigs(use_sent_tokenize=False, filter_trivial_statements=True)

    def score() -> Any:
        source = " ".join(_texts(case["relevant"], "D"))
        return judge.groundedness_measure_with_cot_reasons(
            source, case["response"], groundedness_configs=configs
        )[0]

    yield "faithfulness:claim", score


PEERS = {
    "ragas": ragas_scores,
    "deepeval": deepeval_scores,
    "ragchecker": ragchecker_scores,
    "trulens": trulens_scores,
}


def value(score: Callable[[], Any]) -> float | str:
    """Return a peer's number, ``NaN``, or the name of its error."""
    try:
        found = float(score())
    except Exception as error:  # noqa: BLE001 - whatever the peer raises is the finding
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return type(error).__name__
    return found if math.isfinite(found) else "NaN"


def main(peer: str) -> None:
    """Read the cases, and print the values."""
    cases = json.load(sys.stdin)
    warnings.simplefilter("ignore")
    with contextlib.redirect_stdout(sys.stderr):
        found = {
            case["name"]: {metric: value(score) for metric, score in PEERS[peer](case)}
            for case in cases
        }
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
