"""Options of ``batch submit``; annotations are evaluated, as in :mod:`labeler.data.options`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from labeler.data.options import Option
from labeler.labeling.options import RequestOptions, SameHost
from labeler.plugins.batch.client import OpenAIBatches
from labeler.plugins.batch.folder import FileLimits


@dataclass(frozen=True, kw_only=True)
class BatchOptions(RequestOptions):
    """Options of ``batch submit``."""

    same_host: SameHost = False
    batches: Annotated[
        OpenAIBatches | None,
        Option("The service, such as OpenAIBatches(api_key=…).", cli=False),
    ] = None
    limits: Annotated[
        FileLimits | None, Option("How large one file of a batch may be.", cli=False)
    ] = None
    notice: Annotated[
        Callable[[str], object] | None,
        Option("Called with messages for people.", cli=False),
    ] = None
