"""What the site needs beside Markdown: pages made from the source, links out of docs/, formulas, two languages.

A hook of MkDocs (``hooks`` in mkdocs.yml). Nothing of a page is fetched from the network, here or in a browser.
"""

from __future__ import annotations

import importlib
import inspect
import posixpath
import re
import sys
from collections.abc import Callable
from copy import copy
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path[:0] = [str(ROOT), str(DOCS)]

import operators_page  # noqa: E402

#: packages of the reference, in its order
ROOMS = [
    'entry',
    'config',
    'envs',
    'policy',
    'model',
    'armor',
    'rl_utils',
    'torch_utils',
    'graph',
    'data',
    'worker',
] + ['league', 'parallel', 'interaction', 'loader', 'hpc_rl', 'utils']
PACKAGES = ['nervex', *(f'nervex.{room}' for room in ROOMS)]
#: pages of the repository outside of docs/; on the site they are below project/
PROJECT = ['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md', 'benchmark/README.md'] + sorted(
    str(path.relative_to(ROOT))
    for pattern in ('benchmark/results/*.md', 'app_zoo/**/README.md')
    for path in ROOT.glob(pattern)
)
LANGUAGES = {'en': 'English', 'zh': '中文'}
_CODE = re.compile(r'(```.*?```|`[^`\n]+`)', re.S)
_LINK = re.compile(r'(!?)\[([^\]]*)\]\(([^)\s]+)\)')
_MATH = re.compile(r'\$([^$\n]+)\$')


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The pages that are made here are put into the navigation."""
    english = next(iter(config.nav[0].values()))
    for section in next(part['Reference'] for part in english if 'Reference' in part):
        if isinstance(section, dict) and 'API' in section:
            section['API'] = [{name: f'api/{name}.md'} for name in PACKAGES]
        if isinstance(section, dict) and 'Project' in section:
            section['Project'] = [{_title(path): f'project/{path}'} for path in PROJECT]
    return config


def _title(path: str) -> str:
    heading = (ROOT / path).read_text(encoding='utf-8').split('\n', 1)[0].lstrip('# ')
    return heading if path != 'README.md' else 'README'


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the reference, the pages of the repository, and a first page that leads to the English one."""
    for path in PROJECT:
        files.append(File.generated(config, f'project/{path}', abs_src_path=str(ROOT / path)))
    for name in PACKAGES:
        files.append(File.generated(config, f'api/{name}.md', content=package_page(name)))
    first = (
        '<!doctype html><meta http-equiv="refresh" content="0; url=en/index.html"><a href="en/index.html">nerveX</a>'
    )
    files.append(File.generated(config, 'index.html', content=first))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links lead to pages of the site, and formulas become MathML; code stays as it is."""
    here = page.file.src_uri
    parts = _CODE.split(markdown)
    has_math = here == 'operators.md' or here.startswith('api/')
    for n in range(0, len(parts), 2):
        if has_math:
            parts[n] = _MATH.sub(lambda found: f'<span class="formula">{convert(found[1])}</span>', parts[n])
    text = ''.join(parts)
    fenced = re.split(r'(```.*?```)', text, flags=re.S)
    fenced[::2] = [_LINK.sub(lambda found: _link(found, here, files), part) for part in fenced[::2]]
    return ''.join(fenced)


def _link(found: re.Match[str], here: str, files: Files) -> str:
    image, text, target = found.groups()
    path, hash_, anchor = target.partition('#')
    if not path or re.match(r'\w+:', path):
        return found[0]
    source = here.removeprefix('project/') if here.startswith('project/') else f'docs/{here}'
    there = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    there = there.removeprefix('docs/') if there.startswith('docs/') else f'project/{there}'
    if files.get_file_from_path(there) is None:
        return text if (ROOT / there.removeprefix('project/')).exists() else found[0]
    relative = posixpath.relpath(there, posixpath.dirname(here))
    return f'{image}[{text}]({relative}{hash_}{anchor})'


def on_page_context(context: dict[str, Any], page: Page, config: MkDocsConfig, nav: Navigation) -> dict[str, Any]:
    """Show the topics of the page's language, and lead to the same page in the other one."""
    language = 'zh' if page.file.src_uri.startswith('zh/') else 'en'
    context['nav'] = copy(nav)
    topics = {title: next(item for item in nav.items if item.title == title).children for title in LANGUAGES.values()}
    context['nav'].items = topics[LANGUAGES[language]]
    if language == 'zh':  # the reference is in English
        reference = copy(next(item for item in topics['English'] if item.title == 'Reference'))
        reference.title = '参考'
        context['nav'].items = [*context['nav'].items, reference]
    name = page.file.src_uri[3:] if page.file.src_uri[:3] in ('en/', 'zh/') else 'index.md'
    alternate = []
    for other, title in LANGUAGES.items():
        target = f'{other}/{name}' if (DOCS / other / name).exists() else f'{other}/index.md'
        link = posixpath.relpath(target, posixpath.dirname(page.file.src_uri)).removesuffix('.md') + '.html'
        alternate.append(dict(name=title, link=link, lang=other))
    config.extra['alternate'] = alternate
    config.extra['homepage'] = posixpath.relpath(f'{language}/index.html', posixpath.dirname(page.file.src_uri))
    config.theme['language'] = language
    return context


def package_page(name: str) -> str:
    """
    Overview:
        The reference of what a package offers (its ``__all__``), in Markdown, from signatures and docstrings.
    """
    package = importlib.import_module(name)
    names = [item for item in sorted(getattr(package, '__all__', dir(package))) if item[0] != '_']
    offered = {item: getattr(package, item) for item in names}
    text = f'# {name}\n\n{inspect.getdoc(package) or ""}\n'
    kinds: tuple[tuple[str, Callable[[Any], bool]], ...] = (
        ('Classes', lambda item: inspect.isclass(item) and not hasattr(item, '_fields')),
        ('Records', lambda item: inspect.isclass(item) and hasattr(item, '_fields')),
        ('Functions', inspect.isroutine),
    )
    for title, belongs in kinds:
        items = {key: item for key, item in offered.items() if belongs(item)}
        if items:
            text += f'\n## {title}\n' + ''.join(_entry(key, item) for key, item in items.items())
    return text


def _entry(name: str, item: Any) -> str:
    if hasattr(item, '_fields'):
        return f'\n### {name}\n\n`{name}({", ".join(item._fields)})`\n'
    text = f'\n### {name}\n\n`{name}{_signature(item)}`\n{operators_page._sections(item)}'
    if inspect.isclass(item):
        begin = vars(item).get('__init__')
        if 'Arguments:' in (getattr(begin, '__doc__', None) or ''):
            text += operators_page._sections(begin)
        for method_name, method in vars(item).items():
            function = getattr(method, '__func__', method)
            if inspect.isfunction(function) and method_name[0] != '_' and function.__doc__:
                text += f'\n#### {name}.{method_name}\n\n`{method_name}{_signature(function)}`\n'
                text += operators_page._sections(function)
    return text


def _signature(item: Any) -> str:
    try:
        return operators_page._signature(item)
    except (TypeError, ValueError):  # what is written in C has none
        return ''
