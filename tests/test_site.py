"""The site of docs/ builds strictly, from this checkout alone: links, anchors and navigation are complete."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
NEEDS = [name for name in ('material', 'latex2mathml', 'jieba') if importlib.util.find_spec(name) is None]


@pytest.fixture(scope='module')
def site(tmp_path_factory):
    if NEEDS:
        pytest.skip(f'the site needs {", ".join(NEEDS)}: pip install -e ".[docs]"')
    folder = tmp_path_factory.mktemp('site')
    done = subprocess.run(
        [sys.executable, '-m', 'mkdocs', 'build', '--strict', '--site-dir', str(folder)],
        cwd=ROOT,
        env={**os.environ, 'PYTHONPATH': str(ROOT), 'NO_MKDOCS_2_WARNING': '1'},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:] + done.stdout[-1000:]
    return folder


def test_every_page_is_there_in_the_navigation_of_its_language(site):
    for page in sorted((ROOT / 'docs').glob('??/*.md')):
        language, name = page.parent.name, page.stem
        html = (site / language / f'{name}.html').read_text(encoding='utf-8')
        assert f'<html lang="{language}"' in html, page
        there = re.findall(r'href="(?:\./)?(\w+)\.html" class="md-nav__link', html)
        assert name in there or 'class="md-nav__link md-nav__link--active"' in html, page
        assert ('快速开始' in html) == (language == 'zh'), page
        assert 'api/nervex.envs.html" class="md-nav__link' in html, page


def test_pages_fetch_nothing_from_elsewhere(site):
    fetched = re.compile(r'<(?:script|link|img)[^>]+(?:src|href)="?(?:https?:)?//([^"/ >]+)')
    hosts = {host for page in site.rglob('*.html') for host in fetched.findall(page.read_text(encoding='utf-8'))}
    assert not hosts


def test_the_reference_is_made_of_docstrings(site):
    html = (site / 'api' / 'nervex.envs.html').read_text(encoding='utf-8')
    assert 'BaseEnv.create_actor_env_cfg' in html and ':obj:' not in html
    assert '<math' in (site / 'operators.html').read_text(encoding='utf-8')


def test_pictures_are_as_they_would_be_drawn(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / 'docs')
    import drawings

    for name, text in drawings.pictures().items():
        assert (drawings.FOLDER / name).read_text(encoding='utf-8') == text, 'run python docs/drawings.py'
