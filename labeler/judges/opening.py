"""The judges that options describe."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from labeler.data.options import given
from labeler.errors import LabelerError, UnknownName, UsageError
from labeler.judges.options import PACE, PROVIDERS, JudgeOptions, ServerOptions, split_name

if TYPE_CHECKING:
    from labeler.judges.judge import Judge, JudgeSpec
    from labeler.judges.options import JudgeLike
    from labeler.judges.pricing import Price

_RECORDED = "recorded"
"""The option of the replay judge; every other one is for hosted models."""
OF_ONE_SERVER = {one.name for one in fields(ServerOptions)} - {"allow_http", "ca_file", "proxy"}
"""Options of a server that hold for one provider only; the others carry no secret."""


def made_judge(given: Judge) -> Judge:
    """Return a judge that a caller made.

    Raises:
        UsageError: it is something else, such as a bare function.
    """
    if not hasattr(given, "spec"):
        raise UsageError(
            "a judge has a name and a version, which enter label keys: decorate the function "
            f"with @labeler.judge(NAME, version=VERSION); judge is {given!r:.40}"
        )
    return given


def open_judge(
    options: JudgeOptions,
    *,
    also: Iterable[str] = (),
    notice: Callable[[str], None] | None = None,
) -> Judge:
    """Make the judge that options describe; the key comes from the environment only.

    Args:
        options: without the name of a judge, they mean ``openai`` if a key or one of its options is
            given, else ``embedded``.
        also: other given options that only hosted models heed.
        notice: called with a warning when the embedded judge is chosen by default; without it, the
            name of a judge is required then.

    Raises:
        UsageError: an option is missing, or does not apply to the judge.
        UnknownName: no judge has that name.
    """
    options = options.resolved()
    named = options.judge
    applied = given(replace(options, judge=None), JudgeOptions)
    if not isinstance(named, str | None):
        judge = made_judge(named)
        if applied:
            raise UsageError(f"the judge is made already: give {', '.join(applied)} to it")
        return judge
    hosted = (applied.keys() - {_RECORDED}) | set(also)
    chosen = named or ("openai" if hosted or os.environ.get("OPENAI_API_KEY") else "embedded")
    if options.model == os.environ.get("LABELER_MODEL"):
        hosted.discard("model")
    _require_applicable(chosen, hosted | (applied.keys() & {_RECORDED}))
    if named is None and chosen == "openai" and options.model is None:
        raise UsageError(
            "no model is named, and models retire, so none is built in: give --judge openai:MODEL, "
            "or --judge embedded, which needs none"
        )
    if chosen in PROVIDERS:
        return _hosted_judge(chosen, options)
    if chosen == "replay":
        from labeler.judges.scripted import ReplayJudge  # noqa: PLC0415 - reads label files

        if not options.recorded:
            raise UsageError("the replay judge needs --recorded LABELS to answer from")
        return ReplayJudge.from_file(options.recorded)
    if named is None:
        if notice is None:
            raise UsageError("name a judge, such as judge='embedded', or a model")
        notice(
            "no key in OPENAI_API_KEY and no --model: labeling with the embedded judge, which "
            "compares words; --judge embedded says so on purpose"
        )
    return _named_judge(chosen)


def open_judges(
    judges: str | Sequence[JudgeLike], options: JudgeOptions, *, also: Iterable[str] = ()
) -> list[Judge]:
    """Make several judges.

    Args:
        judges: judges or their names, or names separated by commas; those of hosted models are
            ``PROVIDER:MODEL``.
        options: those of all judges; each judge gets the ones that apply to it.
        also: as for :func:`open_judge`.

    Raises:
        UsageError: a judge is named twice, one price is given for several models, an address or
            a key for several providers, or as for :func:`open_judge`.
    """
    if options.judge is not None:
        raise UsageError("--judge names one judge and --judges several: give one of the two")
    if not isinstance(judges, Iterable):
        raise UsageError(f"judges must be a list of judges or of their names, got {judges!r:.40}")
    wanted = [one.strip() for one in judges.split(",")] if isinstance(judges, str) else [*judges]
    names = [one for one in wanted if isinstance(one, str)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(f"--judges names {twice[0]!r} twice; --repeat has each judge vote again")
    kinds = [split_name(name)[0] for name in names]
    hosted = [kind for kind in kinds if kind in PROVIDERS]
    if options.price is not None and len(hosted) > 1:
        raise UsageError(
            "--price is for one model, but --judges names several: make these judges in Python, "
            "each with its own price"
        )
    of_one = sorted(given(options, ServerOptions).keys() & OF_ONE_SERVER)
    if of_one and len(set(hosted)) > 1:
        raise UsageError(
            f"{_listed(of_one)} would send the key of one provider to another, and --judges names "
            f"{' and '.join(sorted(set(hosted)))}: make these judges in Python, each with its own"
        )
    return [
        _one_of(kinds, one, options, also) if isinstance(one, str) else made_judge(one)
        for one in wanted
    ]


def _one_of(kinds: Sequence[str], name: str, options: JudgeOptions, also: Iterable[str]) -> Judge:
    """Make one of several judges, of the options that apply to it."""
    kind, model = split_name(name)

    def applies(option: str) -> bool:
        # An option that no judge takes goes to the first judge, which rejects it.
        return _takes(kind, option) or not any(_takes(other, option) for other in kinds)

    applied = {o: value for o, value in given(options, JudgeOptions).items() if applies(o)}
    if model:
        applied.pop("model", None)
    return open_judge(JudgeOptions(**(applied | {"judge": name})), also=filter(applies, also))


def unheeded(judge: str) -> frozenset[str]:
    """Return the names of options that a judge does not take; a model, if it names its own."""
    kind, model = split_name(judge)
    names = {one.name for one in fields(JudgeOptions)} - {"judge"} | PACE
    others = frozenset(name for name in names if not _takes(kind, name))
    if kind in PROVIDERS:
        others |= PROVIDERS[kind].lacks
    return others | {"model"} if model else others


def reject_foreign_server(judge: str, of_file: str | None, names: Iterable[str]) -> None:
    """Reject another provider's address and key next to a judge.

    Args:
        judge: the judge that is asked for.
        of_file: the judge of the configuration file that sets the options.
        names: the options that the file sets.

    Raises:
        UsageError: the file is about another provider, and names its address or key.
    """
    kind, other = split_name(judge)[0], split_name(of_file or "openai")[0]
    if (
        kind in PROVIDERS
        and kind != other
        and (of_one := sorted(OF_ONE_SERVER.intersection(names)))
    ):
        raise UsageError(
            f"{_listed(of_one)} of the configuration file would send the key of one provider to "
            f"another: the file is about {other}, and --judge names {kind}; use another file"
        )


def _takes(kind: str, option: str) -> bool:
    """Return True if a kind of judge takes an option."""
    return kind == "replay" if option == _RECORDED else kind in PROVIDERS


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"--{name.replace('_', '-')}" for name in names)


def price_of_run(judges: Sequence[Judge]) -> Price | None:
    """Return the price that a run's cost is reported by; ``None`` if a paid judge's is unknown."""
    prices: list[Price | None] = [judge.price for judge in judges if hasattr(judge, "price")]
    return prices[0] if prices and None not in prices else None


def _require_applicable(chosen: str, names: Iterable[str]) -> None:
    """Reject options that the judge would ignore: their user expects an effect."""
    ignored = {name for name in names if not _takes(chosen, name)}
    if hosted := sorted(ignored - {_RECORDED}):
        raise UsageError(f"judge {chosen} takes no {_listed(hosted)}; only a hosted model does")
    if ignored:
        raise UsageError(f"judge {chosen} takes no --recorded; only replay does")


def _named_judge(name: str) -> Judge:
    from labeler.judges.judge import JUDGES  # noqa: PLC0415 - loads pydantic

    declared, _, model = name.partition(":")
    try:
        kind: Any = JUDGES[declared if declared in JUDGES.declared() else name]
    except UnknownName as error:
        raise UnknownName(f"{error}{_provider_hint(name)}") from error
    if not callable(kind):  # a judge, such as a decorated function
        return made_judge(kind)
    try:
        judge = kind(model) if declared in JUDGES.declared() and model else kind()
    except LabelerError:
        raise
    except Exception as error:
        raise UsageError(
            f"judge {name!r} cannot be made: {type(error).__name__}: {error}; make one with its "
            "settings and pass it; a function is decorated with @labeler.judge(NAME, version=…)"
        ) from error
    return made_judge(judge)


def _provider_hint(name: str) -> str:
    """Say how a model is named, where the unknown name of a judge may be that of a model."""
    if ":" not in name:
        return f"; a model is named with its provider, such as openai:{name:.80}"
    return f"; providers of models are {', '.join(PROVIDERS.names())}"


def hosted_spec(options: JudgeOptions) -> JudgeSpec:
    """Return the specification of the hosted model that options describe; it needs no key.

    Raises:
        UsageError: no model is named, or an option is out of range or does not apply.
    """
    from labeler.judges.openai.request import spec_of  # noqa: PLC0415 - loads pydantic

    options = options.resolved()
    chosen = str(options.judge or "openai")
    if chosen not in PROVIDERS:
        raise UsageError(
            f"judge {chosen} sends nothing to a hosted model, so there is nothing to estimate; "
            "name a model, such as --judge openai:MODEL"
        )
    if options.model is None:
        raise UsageError("an estimate needs --model (or LABELER_MODEL)")
    _require_applicable(chosen, given(options, JudgeOptions).keys() - {"judge"})
    return spec_of(options.model, options.settings, chosen)


def required_model(provider: str, options: JudgeOptions) -> str:
    """Return the model that options name.

    Raises:
        UsageError: they name none.
    """
    if options.model is None:
        raise UsageError(
            f"the {provider} judge needs --model (or LABELER_MODEL): models retire, so none is "
            "built in"
        )
    return options.model


def _hosted_judge(provider: str, options: JudgeOptions) -> Judge:
    model = required_model(provider, options)
    from labeler.judges.judge import JUDGES  # noqa: PLC0415 - loads pydantic
    from labeler.judges.openai.address import environment_key  # noqa: PLC0415 - for hosted ones

    key = None
    if options.api_key_command is None:
        key = environment_key(options.base_url, provider)
    kind: Callable[..., Judge] = JUDGES[provider]
    return kind(model, **options.settings, api_key=key, price=options.find_price())
