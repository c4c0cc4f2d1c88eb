"""Writes the page of all operators from their docstrings: ``python docs/operators_page.py > docs/operators.md``."""

import inspect
import re
import typing
from types import ModuleType
from typing import Any

from nervex import rl_utils

INTRODUCTION = """# Operators

The functions of `nervex.rl_utils`, with their formulas, papers and shapes. This page is generated from the docstrings
by `python docs/operators_page.py > docs/operators.md`; a test compares the two.

T is time, B the batch, N the number of actions, A the number of agents. Time is the first axis. `done` and
`truncated` may be bool or float, `weight` may be None (all ones); a mean divides by the number of samples, not by the
sum of the weights.
"""
#: title -> modules, in the order of the page
CHAPTERS = {
    'Temporal-difference errors': ['td.q', 'td.distributional'],
    'Returns and advantages': ['scan', 'gae', 'td.returns', 'vtrace', 'upgo', 'isw'],
    'Policy losses': ['a2c', 'ppo', 'coma', 'alphazero'],
    'Distributions': ['categorical'],
    'Transformations of values and quantiles': ['transforms'],
    'Exploration': ['noise', 'epsilon'],
    'Samples from trajectories': ['adder', 'flatten', 'her'],
}
HEADINGS = ('Overview', 'Arguments', 'Returns', 'Shapes')


def page() -> str:
    """
    Overview:
        The whole page.
    """
    text = INTRODUCTION
    for title, modules in CHAPTERS.items():
        text += f'\n## {title}\n'
        for module_name in modules:
            module = __import__(f'nervex.rl_utils.{module_name}', fromlist=['_'])
            text += ''.join(_entry(name, item) for name, item in public(module))
    return text


def public(module: ModuleType) -> list[tuple[str, Any]]:
    """
    Overview:
        The functions and classes that a module defines and the package, or a table of names, offers.
    """
    offered = [*rl_utils.__all__, *(f.__name__ for f in rl_utils.beta_function_map.values())]
    items = [(name, item) for name, item in vars(module).items() if callable(item) and name in offered]
    own = [(name, item) for name, item in items if item.__module__ == module.__name__ and name == item.__name__]
    return [(name, item) for name, item in own if item.__doc__ and not _is_data(item)]


def _is_data(item: Any) -> bool:
    return isinstance(item, type) and hasattr(item, '_fields')


def _entry(name: str, item: Any) -> str:
    text = f'\n### {name}\n\n`{name}{_signature(item)}`\n' + _records(item) + _other_names(name, item) + _sections(item)
    if isinstance(item, type):
        if 'Arguments:' in (vars(item).get('__init__', item).__doc__ or ''):
            text += _sections(vars(item).get('__init__', item))
        for method_name, method in vars(item).items():
            if inspect.isfunction(method) and not method_name.startswith('_') and 'Overview' in (method.__doc__ or ''):
                text += f'\n#### {name}.{method_name}\n\n`{method_name}{_signature(method)}`\n'
                text += _sections(method)
    return text


def _records(item: Any) -> str:
    """The fields of the namedtuples that a function takes and returns, in their order."""
    if isinstance(item, type):
        return ''
    signature = inspect.signature(item)
    taken = [f'`{p.name}` is {_fields(p.annotation)}' for p in signature.parameters.values() if _fields(p.annotation)]
    result = signature.return_annotation
    given = [_fields(kind) for kind in (result, *typing.get_args(result)) if _fields(kind)]
    lines = taken + ([f'the result is {" and ".join(given)}'] if given else [])
    text = '; '.join(lines)
    return f'\n{text[0].upper()}{text[1:]}.\n' if text else ''


def _fields(kind: Any) -> str:
    if not (isinstance(kind, type) and hasattr(kind, '_fields')):
        return ''
    defaults = kind._field_defaults
    return f'`{kind.__name__}({", ".join(f"{n}={defaults[n]}" if n in defaults else n for n in kind._fields)})`'


def _other_names(name: str, item: Any) -> str:
    names = [other for other in rl_utils.__all__ if other != name and getattr(rl_utils, other) is item]
    return f'\nAlso called {", ".join(f"`{other}`" for other in names)}.\n' if names else ''


def _signature(item: Any) -> str:
    """Names and defaults without types, which the arguments' descriptions tell."""
    parameters = inspect.signature(item).parameters.values()
    shown = []
    for parameter in parameters:
        if parameter.name == 'self':
            continue
        text = {'VAR_POSITIONAL': '*', 'VAR_KEYWORD': '**'}.get(parameter.kind.name, '') + parameter.name
        if parameter.default is not parameter.empty:
            default = parameter.default
            text += f'={getattr(default, "__name__", None) or (repr(default) if _is_plain(default) else "...")}'
        shown.append(text)
    return f'({", ".join(shown)})'


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, (int, float, str, tuple))


def _sections(item: Any) -> str:
    """Docstring headings become paragraphs and lists."""
    text, heading, lines = '', '', []
    for line in [*(inspect.getdoc(item) or '').splitlines(), 'End:']:
        found = re.fullmatch(r'(\w+):', line)
        if not found:
            lines.append(line.strip())
            continue
        items = re.split(r'(?:^|\n)- ', '\n'.join(lines).strip())
        body = '\n'.join(('- ' if i else '') + ' '.join(x.split()) for i, x in enumerate(items) if x)
        if body and heading in ('', 'Overview'):
            text += f'\n{body}\n'
        elif body and heading in HEADINGS:
            text += f'\n{heading}:\n\n{body}\n'
        heading, lines = found.group(1), []
    return _markdown(text)


def _markdown(text: str) -> str:
    text = re.sub(r' \(:obj:`([^`]*)`\)', r' (`\1`)', text)
    text = re.sub(r':math:`([^`]*)`', r'$\1$', text)
    text = re.sub(r':(?:func|class|meth|obj):`(?:nervex\.rl_utils\.)?([^`]*)`', r'`\1`', text)
    text = text.replace('``', '`')
    text = re.sub(r'arXiv:(\d{4}\.\d{4,5})', r'[arXiv:\1](https://arxiv.org/abs/\1)', text)
    return re.sub(r'doi:(10\.[^\s)]+)', r'[doi:\1](https://doi.org/\1)', text)


if __name__ == '__main__':
    import sys

    sys.stdout.write(page())
