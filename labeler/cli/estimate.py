"""The ``estimate`` command: the cost of a run before anything is sent."""

from __future__ import annotations

from typing import Annotated

import typer

from labeler import api
from labeler.cli import options
from labeler.cli.terminal import notify_read, print_display, print_json, print_sections
from labeler.data.options import RowsOptions
from labeler.errors import UsageError
from labeler.labeling.estimates import compare_profiles
from labeler.labeling.options import EstimateOptions
from labeler.labels.profiles import AUTO, PROFILES


def estimate(
    rows: options.Rows,
    *,
    given: EstimateOptions,
    each_profile: Annotated[
        bool, typer.Option("--each-profile", help="Compare the cost of all profiles.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Estimate requests, cost and time; nothing is sent."""
    if each_profile and given.prompt != EstimateOptions.prompt:
        raise UsageError("--each-profile takes each profile's own prompt: leave --prompt out")
    opened = given.open(rows)
    wanted = [*PROFILES, AUTO] if each_profile else [given.profile]
    asked = vars(given) | vars(RowsOptions())
    found = {name: api.estimate(opened, **asked | {"profile": name}) for name in wanted}
    notify_read(opened)
    if as_json:
        value = {name: one.as_json() for name, one in found.items()}
        print_json(value if each_profile else value[given.profile])
    elif each_profile:
        print_sections([compare_profiles(found)])
    else:
        print_display(found[given.profile])
