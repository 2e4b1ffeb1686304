"""Answer relevancy by generated questions and embeddings.

Annotations of options are evaluated, as in :mod:`labeler.data.options`.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, TypeAlias

from labeler.data.options import MAIN, REPEATS, ExampleOptions, Option
from labeler.extensions import importer
from labeler.judges.options import JudgeLike, JudgeOptions
from labeler.labeling.options import Dollars, RunOptions

if TYPE_CHECKING:
    from labeler.plugins.similarity.comparing import EmbeddingWork, iter_similarity
    from labeler.plugins.similarity.embedders import Embedder

    EmbedderLike: TypeAlias = str | Embedder
else:  # the type of the command line
    EmbedderLike = str

__all__ = ["iter_similarity"]
__getattr__ = importer(__name__, {"comparing": "iter_similarity"})


@dataclass(frozen=True, kw_only=True)
class SimilarityOptions(ExampleOptions, JudgeOptions, RunOptions):
    """Options of ``similarity``."""

    PANEL: ClassVar = MAIN
    DOING: ClassVar = "writing questions"

    judge: Annotated[
        JudgeLike | None,
        Option("PROVIDER:MODEL; embedded and replay cannot write questions.", takes=(object,)),
    ] = None
    budget: Annotated[
        Dollars | None,
        Option("Maximum cost in US dollars, judge and embedder together.", takes=(object,)),
    ] = None
    trial: Annotated[
        int, Option("Trial number; a new number asks the judge again.", min=0, panel=REPEATS)
    ] = 0
    embedder: Annotated[
        EmbedderLike,
        Option("wordllama (extra 'embeddings'), or openai:MODEL.", takes=(object,)),
    ] = "wordllama"
    dimensions: Annotated[
        int | None,
        Option("Dimensions of openai embeddings; by default as many as the model gives.", min=1),
    ] = None
    embedder_url: Annotated[
        str | None,
        Option(
            "Address of the embedding server, its key in EMBEDDER_API_KEY; by default the judge's."
        ),
    ] = None
    embedding_price: Annotated[
        Dollars | None,
        Option("US dollars per million tokens of text, such as 0.02.", takes=(object,)),
    ] = None
    work: Annotated[
        "EmbeddingWork | None", Option("Filled with what embedding took.", cli=False)
    ] = None
