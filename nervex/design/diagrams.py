"""What imports what, and what derives from what: Mermaid diagrams in Markdown, read from the source."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def write_diagrams(folder: str) -> list[str]:
    """
    Overview:
        Write ``packages.md`` (which package imports which) and ``<package>.md`` (the classes of a package and what they
        derive from) into a folder, which is made; GitHub and most editors draw them.
    Returns:
        - files (:obj:`list[str]`): what was written
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    diagrams = {'packages': package_diagram(), **{name: class_diagram(name) for name in _packages()}}
    for name, text in diagrams.items():
        (target / f'{name}.md').write_text(f'# {name}\n\n```mermaid\n{text}\n```\n', encoding='utf-8')
    return [str(target / f'{name}.md') for name in diagrams]


def package_diagram() -> str:
    """An arrow from every package to each that it imports, with the number of imports."""
    arrows: Counter[tuple[str, str]] = Counter()
    for package in _packages():
        for _, tree in _sources(package):
            for node in ast.walk(tree):
                if isinstance(node, ast.ImportFrom) and (node.module or '').startswith('nervex.'):
                    arrows[package, (node.module or '').split('.')[1]] += 1
    lines = [f'    {a} -->|{n}| {b}' for (a, b), n in sorted(arrows.items()) if a != b and b in _packages()]
    return '\n'.join(['graph TD', *lines])


def class_diagram(package: str) -> str:
    """The public classes of a package with their public methods, and arrows from bases to what derives from them."""
    classes = {
        node.name: node
        for _, tree in _sources(package)
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith('_')
    }
    lines = []
    for name, node in sorted(classes.items()):
        methods = [part.name for part in node.body if isinstance(part, ast.FunctionDef) and part.name[0] != '_']
        lines.append(
            '    class ' + name + (' {\n' + ''.join(f'        {m}()\n' for m in methods) + '    }' if methods else '')
        )
        bases = (base.id if isinstance(base, ast.Name) else getattr(base, 'attr', '') for base in node.bases)
        lines += [f'    {base} <|-- {name}' for base in bases if base]
    return '\n'.join(['classDiagram', *lines])


def _packages() -> list[str]:
    return sorted(path.parent.name for path in ROOT.glob('*/__init__.py'))


def _sources(package: str) -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted((ROOT / package).rglob('*.py')):
        if 'tests' not in path.parts:
            yield path, ast.parse(path.read_text(encoding='utf-8'))
