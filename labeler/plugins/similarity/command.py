"""The ``similarity`` command: questions compared with those that the responses would answer."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from labeler.cli import options
from labeler.cli.label import RunReport, announce_grace, write_run
from labeler.cli.options import check_label_target
from labeler.cli.terminal import BUDGET_REACHED, SOME_FAILED, notify
from labeler.judges.options import JudgeOptions
from labeler.plugins.similarity import SimilarityOptions
from labeler.sentences.display import plural

if TYPE_CHECKING:
    from labeler.plugins.similarity.comparing import EmbeddingWork
    from labeler.plugins.similarity.embedders import Embedder


def similarity(
    rows: options.Rows,
    *,
    given: SimilarityOptions,
    output: options.Output = "-",
) -> int:
    """Measure answer relevancy: questions against generated ones."""
    from labeler.judges.opening import price_of_run
    from labeler.labeling.starting import judges_of
    from labeler.plugins.similarity.comparing import EmbeddingWork, iter_similarity
    from labeler.plugins.similarity.embedders import open_embedder

    [judge] = judges_of(given, default="openai")
    check_label_target(rows, output)
    embedder = open_embedder(given)
    work, kinds = EmbeddingWork(), Counter[str]()

    def origins_of_run() -> tuple[str, ...]:
        origins = progress.counts.origins
        return f"{origins['judge']} written by {judge.spec}", f"{origins['store']} from the store"

    announce_grace()
    with RunReport("writing questions", price_of_run([judge])) as progress:
        opened = {"judge": judge, "embedder": embedder, "work": work}
        opened |= dict.fromkeys(("dimensions", "embedder_url", "embedding_price"))
        opened |= {"progress": False, "on_event": progress}
        write_run(
            iter_similarity(rows, **vars(given) | vars(JudgeOptions()) | opened),
            output,
            progress,
            origins_of_run,
            each=lambda outcome: kinds.update([outcome.kind]),
        )
    progress.close(*origins_of_run())
    notify(_embedding(embedder, work))
    failed, counts = kinds["failure"], progress.counts
    if failed > counts.failed:
        lost = plural(failed - counts.failed, "row")
        notify(f"{lost} could not be embedded: each says why in its line")
    if counts.reasons["budget"] or (failed > counts.failed and work.spent.closed):
        return BUDGET_REACHED
    return SOME_FAILED if failed else 0


def _embedding(embedder: Embedder, work: EmbeddingWork) -> str:
    """Return the texts, requests, tokens and cost of embedding."""
    parts = [
        f"{work.compared} compared by {embedder.spec}",
        f"{work.stored} from the store",
        *([f"{work.failed} failed"] if work.failed else []),
    ]
    if not work.requests:
        return ", ".join(parts)
    price = embedder.price
    cost = "price unknown" if price is None else f"${work.spent.known:.6f} by {price.source}"
    return f"{', '.join(parts)}; {plural(work.requests, 'request')}; {work.tokens} tokens; {cost}"
