"""The choice of label tasks: splitter, prompt and schema by the names in options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from labeler.catalog import unknown
from labeler.errors import UnknownName, UsageError
from labeler.judges.judge import Judge, require_answers
from labeler.judges.pricing import Price
from labeler.judges.prompting import DECISIONS, Prompt, is_retrieval_prompt, load_prompt
from labeler.judges.providers import PROVIDERS
from labeler.judges.task import TASK_KINDS
from labeler.labeling.context_limit import context_limit
from labeler.labeling.options import BLIND, RELEVANCE, BatchOptions, EstimateOptions, LabelOptions
from labeler.labeling.tasks import LabelTasks
from labeler.labels.profiles import AUTO, PROFILES, SUPPORT, Profile, family_of, version_of
from labeler.labels.schemas import ResponseSchema, load_schema
from labeler.sentences.splitting import SPLITTERS


def label_tasks(
    judge: Judge,
    options: LabelOptions | BatchOptions | EstimateOptions,
    *,
    extra: int = 0,
    price: Price | None = None,
) -> LabelTasks:
    """Choose splitter, prompt and schema by the names in options.

    Args:
        judge: judge to ask.
        options: their profile ``auto`` is ``reference`` for rows that have a reference answer and
            ``claims`` for the others. Without ``max_input_tokens``, a prompt has as many tokens as
            the judge's model takes, if it is in the price table. Longer records fail.
        extra: added to the trial.
        price: price of the model, if the judge does not know it.

    Raises:
        UnknownName: there is no such splitter, profile or prompt.
        UsageError: the prompt shows a reference answer and the profile does not ask about one, or
            the other way round; ``auto``, which has two prompts, names one in full; or no prompt
            has as few tokens as allowed.
    """
    is_blind = _is_blind(judge, options)
    prompt, profile = options.prompt, options.profile
    common: dict[str, Any] = {
        "judge": judge,
        "splitter": SPLITTERS[options.splitter],
        "trial": options.trial + extra,
        "limit": context_limit(judge, options.max_input_tokens, price),
    }
    if is_blind:
        from labeler.labeling.blind import RetrievalTasks  # noqa: PLC0415 - optional

        name = f"retrieval/{version_of(prompt)}"
        asked: dict[str, Any] = {"prompt": _loader(judge)(name), "schema": load_schema(name)}
        common["relevance"] = RetrievalTasks(**asked, **common)
    if profile != AUTO:
        worded, schema = _asked(judge, PROFILES[profile], prompt, is_blind)
        return LabelTasks(prompt=worded, schema=schema, **common)
    if "/" in prompt:
        raise UsageError(
            f"profile {AUTO!r} has a prompt for each kind of row: name a version, such as "
            f"{version_of(prompt)!r:.20}, and not {prompt!r:.80}"
        )
    (worded, schema), referenced = (
        _asked(judge, PROFILES[name], prompt, is_blind) for name in ("claims", "reference")
    )
    return LabelTasks(prompt=worded, schema=schema, where_referenced=referenced, **common)


def _is_blind(judge: Judge, options: LabelOptions | BatchOptions | EstimateOptions) -> bool:
    """Return whether relevance is judged without responses.

    Raises:
        UsageError: there is no such way, or the judge cannot.
    """
    if options.relevance not in RELEVANCE:
        raise UnknownName(unknown("relevance", options.relevance, RELEVANCE))
    is_blind = options.relevance == BLIND
    if is_blind:
        require_answers(judge, TASK_KINDS["retrieval"]())
    return is_blind


def _loader(judge: Judge) -> Callable[[str], Prompt]:
    """Return what loads the prompts that a judge is asked by."""
    if not _decides(judge):
        return load_prompt
    from labeler.judges.decisions.questions import decision_prompt  # noqa: PLC0415 - for these

    return decision_prompt


def _decides(judge: Judge) -> bool:
    provider = PROVIDERS.get(judge.spec.judge)
    return provider is not None and provider.decides


def _asked(
    judge: Judge, profile: Profile, prompt: str, is_blind: bool
) -> tuple[Prompt, ResponseSchema]:
    """Return a prompt, named by its version or in full, and the schema of its version.

    Raises:
        UnknownName: there is no such prompt.
        UsageError: the prompt asks for relevance and another one does so already, or the other way
            round; or likewise with the reference answer.
    """
    own = f"{profile.name}{SUPPORT * is_blind}/{version_of(prompt)}"
    name = prompt if "/" in prompt else own
    if "/" in prompt and _decides(judge) != (family_of(name) == DECISIONS):
        raise UsageError(f"prompt {name!r} is not one of judge {judge.spec.judge!r}")
    name = own if family_of(name) == DECISIONS else name
    if is_blind != family_of(name).endswith(SUPPORT) or is_retrieval_prompt(name):
        raise UsageError(
            f"prompt {name!r} does not fit --relevance {RELEVANCE[is_blind]}, for which profile "
            f"{profile.name!r} has {own!r}"
        )
    worded = _loader(judge)(name)
    if worded.shows_reference != profile.shows_reference:
        shows = "shows" if worded.shows_reference else "does not show"
        raise UsageError(
            f"prompt {worded.name!r} {shows} the reference answer, which does not fit profile "
            f"{profile.name!r}; its own prompt is {own!r}"
        )
    return worded, load_schema(profile.schema_of(name))
