"""Configuration files: defaults of options from ``labeler.toml`` or ``pyproject.toml``.

Only the working directory is searched. A file found there may come with a cloned folder, so it
cannot redirect documents, run a program, import code or name a file to write: these settings need
``--config FILE`` or the command line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from labeler.catalog import near
from labeler.cli.terminal import notify
from labeler.data.options import read_toml
from labeler.errors import UsageError
from labeler.extensions import offered

if TYPE_CHECKING:
    from typer.core import TyperOption

TABLES = ("rows", "judge", "run", "gates")
_COMMANDS, _CHECK = ("label", "estimate"), "check"
"""Commands whose options stand in the first three tables, as those of installed packages do that
take a file, and the one whose options are gates."""
_WRITTEN = {"output", "junit", "otel_events"}
"""Options that name a file to write."""
_COMMAND_LINE_ONLY = {"config", "show_config", "help", "help_all", "rows", "schema", *_WRITTEN}
_EXPLICIT_ONLY = {
    "base_url",
    "allow_http",
    "proxy",
    "ca_file",
    "header",
    "query",
    "extra_body",
    "api_key_command",
    "embedder_url",
}
_MODULE = re.compile(r"\w+(\.\w+)*")
"""The part of ``package.module:name`` before the colon."""
_FREE = {"model", "map", "id", "by", "group"}
"""Options whose values are names of models and columns, and never imported."""
_JUDGES = {"judge", "judges", "embedder"}
_GATES = {"min", "max", "max_drop"}


def use_file(context: typer.Context, file: str, *, explicit: bool) -> Mapping[str, Any]:
    """Take the defaults of a command's options from a configuration file, and return them.

    Args:
        context: of the command.
        file: the file.
        explicit: True if the user named it.

    Raises:
        UsageError: the file cannot be read, or sets what it may not.
    """
    name, tables = _read(Path(file))
    if explicit and not tables:
        raise UsageError(f"--config {name} has none of the tables [{'], ['.join(TABLES)}]")
    _check(name, tables, context, explicit=explicit)
    wanted = TABLES[3:] if context.command.name == _CHECK else TABLES[:3]
    settings = {key: tables[table][key] for table in wanted for key in tables.get(table, ())}
    given = {
        option.name: settings[_key(option)]
        for option in _options(context.command)
        if _key(option) in settings
    }
    if given:
        notify(f"defaults from {name}")
        context.default_map, context.meta[__name__] = given, name
    return given


def merge_with_file(context: typer.Context) -> None:
    """Add the file's values of repeatable options to those of the command line, and report them.

    A value ``NAME=VALUE`` of the command line replaces that of the file for the same name.
    """
    defaults = context.default_map or {}
    for option in _options(context.command) if defaults else ():
        source = context.get_parameter_source(option.name)
        of_file = defaults.get(option.name)
        if not (option.multiple and of_file and source and source.name == "COMMANDLINE"):
            continue
        typed = context.params[option.name]
        named = {_name_in(option, text) for text in typed}
        values = option.process_value(context, of_file)
        kept = [text for text in values if _name_in(option, text) not in named]
        context.params[option.name] = [*kept, *typed]
        shown = ", ".join(map(str, context.params[option.name]))
        notify(f"--{_key(option)} of {context.meta[__name__]} and the command line: {shown}")


def _name_in(option: TyperOption, text: str) -> str:
    """Return the name in ``NAME=VALUE``, or the text."""
    split = text.rpartition if _key(option) in _GATES else text.partition  # as check reads them
    name, equals, _ = split("=")
    return name.strip() if equals else text


def idle_defaults(values: Mapping[str, Any], defaults: Mapping[str, Any]) -> frozenset[str]:
    """Return the defaults of a file that the judges of a command do not heed, and report them.

    A file serves all commands, so its ``budget`` does not contradict ``--judge embedded``, and
    its ``price`` applies to its own model.

    Args:
        values: values of the command's options.
        defaults: those of the file.
    """
    from labeler.judges.opening import reject_foreign_server, unheeded

    named = values.get("judges") or values.get("judge") or ""
    names = [name.strip() for name in named.split(",") if name]
    kept = {
        name
        for name, value in defaults.items()
        if value == values.get(name) or str(value) == str(values.get(name))  # a type of its own
    }
    for name in names:
        reject_foreign_server(name, defaults.get("judge"), kept)
    idle = frozenset.intersection(*map(unheeded, names)) & kept if names else frozenset()
    if idle:
        notify(f"without effect on --judge {', '.join(names)}: {', '.join(sorted(idle))}")
    own = _model(defaults.get("judge"), defaults)
    asked = {_model(name, values) for name in names or ["openai"]}
    if "price" in kept - idle and own[1] and asked != {own}:
        notify(f"the price in the configuration file is for {':'.join(own)}: not used")
        idle |= {"price"}
    return idle


def _model(judge: str | None, values: Mapping[str, Any]) -> tuple[str, str]:
    """Return the provider and the model of a judge; "" if it names none."""
    from labeler.judges.options import split_name

    kind, model = split_name(judge or "openai")
    return kind, model or values.get("model") or ""


def show_config(context: typer.Context) -> None:
    """Print a command's settings as a configuration file, with the origin of each."""
    for table in TABLES[:3]:
        print(f"[{table}]")  # noqa: T201 - what was asked for
        for option in _options(context.command):
            if _table(context.command, option) != table:
                continue
            value, source = context.params[option.name], context.get_parameter_source(option.name)
            origin = source.name.lower().replace("default_map", "file") if source else "default"
            setting = f"{_key(option)} = {json.dumps(value)}"
            print(f"# {setting}" if value is None else f"{setting}  # {origin}")  # noqa: T201


def _read(file: Path) -> tuple[str, Mapping[str, Any]]:
    """Return the name of a file for people, and its tables."""
    tables = read_toml(file)
    if file.name != "pyproject.toml":
        return str(file), tables
    tools = tables.get("tool")
    own = tools.get("labeler", {}) if isinstance(tools, dict) else {}
    if not isinstance(own, dict):
        raise UsageError(f"{file}: [tool.labeler] must be a table, got {own!r:.80}")
    return f"{file} [tool.labeler]", own


def _check(name: str, tables: Mapping[str, Any], context: typer.Context, *, explicit: bool) -> None:
    """Check every table and value, whatever the command, and what a file may set.

    Raises:
        UsageError: a table or key is unknown, a value has another type, or needs ``--config``.
    """
    known = _known(context, tables)
    for table, settings in tables.items():
        if not isinstance(settings, Mapping):
            what = f"{table!r} must be a table: write [{table}]"
            if table not in known:
                what = f"{table!r} stands outside of all tables{_hint(table, known, known)}"
            raise UsageError(f"{name}: {what}")
        if table not in known:
            raise UsageError(f"{name}: unknown table [{table}]{_hint(table, known)}")
        for key, value in settings.items():
            if key not in known[table]:
                hint = _hint(key, known[table], known)
                if key in _WRITTEN:
                    hint = ": files to write are named on the command line alone"
                raise UsageError(f"{name}: unknown key {key!r} in [{table}]{hint}")
            shown = f"{name}: {key} = {json.dumps(value, default=str):.80}"
            if wanted := _other_type(known[table][key], value):
                raise UsageError(f"{shown} must be {wanted}")
            if not explicit and (why := _danger(key, value)):
                how = f"--config {name.partition(' ')[0]}"
                raise UsageError(f"{shown} takes effect only with {how}, because it {why}")


def _other_type(option: TyperOption, value: object) -> str:
    """Return the type that an option takes instead of a value's; "" if it takes the value."""
    types, wanted = {str, int, float}, "a text or a number"
    if option.is_flag:
        types, wanted = {bool}, "true or false"
    elif option.multiple:
        types, wanted = {list}, "a list of texts"
    return "" if type(value) in types else wanted


def _hint(name: str, names: Iterable[str], known: Mapping[str, Iterable[str]] | None = None) -> str:
    """Return the table that an unknown name belongs to, else near names, else all."""
    for table, keys in (known or {}).items():
        if name in keys:
            return f"; it belongs to [{table}]"
    return near(name, names) or f"; have: {', '.join(sorted(names))}"


def _known(context: typer.Context, tables: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the options by table and key, at least of the commands whose keys a file sets."""
    known: dict[str, dict[str, Any]] = {table: {} for table in TABLES}
    wanted = [(at, key) for at, keys in tables.items() if isinstance(keys, dict) for key in keys]
    for command in _reading_files(context):
        for option in _options(command):
            known[_table(command, option)].setdefault(_key(option), option)
        if all(key in known.get(table, ()) for table, key in wanted):
            break
    return known


def _reading_files(context: typer.Context) -> Iterator[Any]:
    """Yield the commands that read a file: this one, the core's, and the packages'."""
    root: Any = context.find_root().command
    yield context.command
    for name in (*_COMMANDS, _CHECK, *offered("commands")):
        found = root
        with suppress(UsageError):  # the command itself reports what is wrong with its package
            for word in name.split("."):
                found = found.get_command(context, word)
            every = (*getattr(found, "commands", {}).values(), found)
            yield from (one for one in every if any(p.name == "config" for p in one.params))


def _options(command: Any) -> Iterator[TyperOption]:  # noqa: ANN401 - a command of typer
    """Yield the options that a file can set."""
    for one in command.params:
        if one.param_type_name == "option" and _key(one) not in _COMMAND_LINE_ONLY:
            yield one


def _key(option: TyperOption) -> str:
    """Return the name of an option in a file."""
    return max(option.opts, key=len).lstrip("-").replace("-", "_")


def _table(command: Any, option: TyperOption) -> str:  # noqa: ANN401 - a command of typer
    """Return the table of an option: that of its heading in help, else ``run``."""
    if command.name == _CHECK:
        return "gates"
    heading = str(option.rich_help_panel).lower()
    return heading if heading in TABLES else "run"


def _danger(key: str, value: Any) -> str:  # noqa: ANN401 - a text, a number or a list of these
    """Return what a setting of a file that nobody named could do; "" if it is harmless."""
    values = value if isinstance(value, list) else [value]
    texts = (text.strip() for one in values for text in str(one).split(","))
    if key in _EXPLICIT_ONLY or any(_imports(key, text) for text in texts):
        return "sends documents elsewhere or runs code"
    if key == "store" and not Path(str(value)).resolve().is_relative_to(Path.cwd().resolve()):
        return "writes outside this folder"
    return ""


def _imports(key: str, text: str) -> bool:
    """Return True if a value names something to import, and no provider's model or metric."""
    name = text.partition("=")[0]
    module, colon, rest = name.partition(":")
    if not colon or key in _FREE or not _MODULE.fullmatch(module):
        return False
    from labeler.calculators import METRICS
    from labeler.judges.options import PROVIDERS

    if key in _JUDGES:
        return module not in PROVIDERS and (module != "embedded" or ":" in rest)
    if key in _GATES:
        return module not in METRICS
    return True
