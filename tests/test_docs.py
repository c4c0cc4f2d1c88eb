"""The documentation is true: examples and commands run, links lead somewhere, every page is found from the index."""

import ast
import json
import os
import pkgutil
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
RUNNER = ROOT / 'tests' / 'docs_runner.py'
BOTH_LANGUAGES = sorted(page.stem for page in (ROOT / 'docs' / 'zh').glob('*.md'))
CHINESE = [ROOT / 'docs' / 'zh' / f'{name}.md' for name in BOTH_LANGUAGES]
DOCS = [ROOT / 'README.md', ROOT / 'CONTRIBUTING.md', *sorted((ROOT / 'docs').glob('??/*.md'))]
PAGES = [*DOCS, *sorted((ROOT / 'app_zoo').rglob('README.md'))]
MAX_SKIPPED = 4

sys.path.insert(0, str(RUNNER.parent))
import docs_runner  # noqa: E402


def programs_of(page):
    """What the blocks of a page do, parsed: equal ones differ in comments, docstrings and white space at most."""
    return [(b.language, b.skip is None, b.fails, program_of(b)) for b in docs_runner.blocks_of(page) if b.language]


def program_of(block):
    if block.language == 'python':
        tree = ast.parse(block.text)
        for node in ast.walk(tree):
            if isinstance(getattr(node, 'body', None), list):
                node.body = [line for line in node.body if not is_text(line)]
        program = ast.dump(tree)
    elif block.language in docs_runner.SHELLS:
        program = [shlex.split(line, comments=True) for line in block.text.replace('\\\n', ' ').splitlines()]
    elif block.language == 'yaml':
        program = yaml.safe_load(block.text)
    else:
        program = without_comments(block.text)
    file = docs_runner._FILE.match(block.text.partition('\n')[0])
    return file and file[1], program


def is_text(statement):
    """A docstring, or a string that stands alone as one."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def without_comments(text):
    """Comments are translated, and so are the strings of docstrings; the code is the same."""
    text = re.sub(r'""".*?"""', '""', text, flags=re.S)
    return [line.rstrip() for line in re.sub(r'#.*', '', text).splitlines() if line.strip()]


# to execute the program of the English page once more would say nothing more
AS_ENGLISH = [page for page in CHINESE if programs_of(page) == programs_of(ROOT / 'docs' / 'en' / page.name)]
EXAMPLES = [page for page in DOCS if page not in AS_ENGLISH]


@pytest.fixture(scope='module')
def runner():
    """The server that runs pages; it forks one process a page."""
    paths = os.pathsep.join([str(ROOT), os.environ.get('PYTHONPATH', '')])
    server = subprocess.Popen(
        [sys.executable, str(RUNNER)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, 'PYTHONPATH': paths, 'OMP_NUM_THREADS': '1'},
    )
    yield server
    server.stdin.close()
    server.wait(10)


def name_of(page):
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize(
    'page', [*EXAMPLES, *(pytest.param(page, marks=pytest.mark.slow) for page in AS_ENGLISH)], ids=name_of
)
def test_examples_and_commands_of_a_page_run(page, runner, tmp_path):
    """
    Every block of every page is executed. A Chinese page whose blocks are, one by one, the same programs as the English
    page's (parsed: only comments, docstrings and white space differ) has been executed with that one, and is executed
    itself by ``-m slow``; one in which any block differs is executed here, too.
    """
    runner.stdin.write(json.dumps([str(page), str(tmp_path)]) + '\n')
    runner.stdin.flush()
    failed = json.loads(runner.stdout.readline())
    if failed and 'missing' in failed:
        pytest.skip(failed['missing'])
    if failed:
        output = (tmp_path / 'output.txt').read_text(encoding='utf-8')[-2000:]
        pytest.fail(f'{name_of(page)}, line {failed["line"]}:\n{failed["error"]}\noutput:\n{output}', pytrace=False)


@pytest.mark.parametrize('page', PAGES, ids=name_of)
def test_links_of_a_page_lead_somewhere(page):
    text = re.sub(r'```.*?```', '', page.read_text(encoding='utf-8'), flags=re.S)
    for target in re.findall(r'\]\(([^)\s]+)\)', text):
        path, _, anchor = target.partition('#')
        if re.match(r'\w+:', path):
            continue
        there = page if not path else (page.parent / path).resolve()
        assert there.exists(), f'{target}: no such file'
        if anchor:
            assert anchor in anchors_of(there), f'{target}: no such heading'


def anchors_of(page):
    headings = re.findall(r'^#+ (.+)$', page.read_text(encoding='utf-8'), flags=re.M)
    return {re.sub(r'[^\w\- ]', '', heading.lower()).replace(' ', '-') for heading in headings}


@pytest.mark.parametrize('page', [*PAGES, *sorted((ROOT / 'docs').glob('*.md'))], ids=name_of)
def test_what_a_page_names_is_there(page):
    text = page.read_text(encoding='utf-8')
    for path in sorted(set(re.findall(r'\b(?:nervex|app_zoo)(?:\.\w+)+', text))):
        pkgutil.resolve_name(path)  # an error that names what is missing
    for path in sorted(set(re.findall(r'\b(?:nervex|app_zoo|tests|benchmark|docs)(?:/[\w.]+)+(?![\w/<*-])', text))):
        assert (ROOT / path.rstrip('.')).exists(), f'{path}: no such file'


def test_the_page_on_the_config_of_dqn_explains_every_field():
    from nervex.config import compile_config, read_config

    page = (ROOT / 'docs' / 'en' / 'dqn_config.md').read_text(encoding='utf-8')
    text = re.sub(r'```.*?```', '', page, flags=re.S)
    explained = {word for code in re.findall(r'`([^`]+)`', text) for word in re.findall(r'\w+', code)}
    cfg, given = compile_config('cartpole_dqn'), read_config('cartpole_dqn')
    assert not names_in(given, depth=9) - explained
    for section in ('env', 'policy', 'actor', 'evaluator', 'learner', 'commander'):
        assert not names_in(cfg[section], depth=1) - explained, section
    for section in ('learn', 'collect', 'command'):
        assert not names_in(cfg.policy[section], depth=2) - explained, section


@pytest.mark.parametrize('language', ['en', 'zh'])
def test_every_policy_has_its_pseudo_code(language):
    from nervex.utils import POLICY_REGISTRY

    page = ROOT / 'docs' / language / 'pseudo_code.md'
    headings = set(re.findall(r'^## (\w+)$', page.read_text(encoding='utf-8'), flags=re.M))
    own = {name for name, where in POLICY_REGISTRY.query_details().items() if where.startswith('nervex.')}
    assert own <= headings


def names_in(settings, depth):
    found = set(settings)
    for value in settings.values():
        if isinstance(value, dict) and depth > 1:
            found |= names_in(value, depth - 1)
    return found


@pytest.mark.parametrize('language', ['en', 'zh'])
def test_every_page_is_linked_from_the_index(language):
    folder = ROOT / 'docs' / language
    index = (folder / 'index.md').read_text(encoding='utf-8')
    for page in folder.glob('*.md'):
        assert page.name == 'index.md' or f']({page.name})' in index, page.name


@pytest.mark.parametrize('page', CHINESE, ids=name_of)
def test_a_page_has_the_same_examples_in_both_languages(page):
    english = ROOT / 'docs' / 'en' / page.name
    assert [program[:3] for program in programs_of(page)] == [program[:3] for program in programs_of(english)]


@pytest.mark.parametrize(
    'text, same',
    [
        ('```python\ndef f():\n    """Ja."""\n    return \'#\'  # ja\n```', True),
        ("```python\ndef f():\n    return '#!'\n```", False),
        ("```python\n# b.py\ndef f():\n    return '#'\n```", False),
        ("<!-- fails: 2 -->\n```python\ndef f():\n    return '#'\n```", False),
    ],
)
def test_equal_programs_differ_in_comments_and_docstrings_only(text, same, tmp_path):
    pages = [tmp_path / 'en.md', tmp_path / 'zh.md']
    pages[0].write_text('```python\ndef f():\n    """Yes."""\n\n    return \'#\'  # yes\n```', encoding='utf-8')
    pages[1].write_text(text, encoding='utf-8')
    assert (programs_of(pages[0]) == programs_of(pages[1])) == same


def test_all_pages_but_the_generated_one_are_translated():
    english = {page.stem for page in (ROOT / 'docs' / 'en').glob('*.md')}
    assert english - set(BOTH_LANGUAGES) == {'settings'}


@pytest.mark.parametrize(
    'page, file', [('write_a_policy', 'tiny_q.py'), ('write_an_env', 'lamps_env.py'), ('losses', 'expectile.py')]
)
def test_a_recipe_has_at_most_20_lines(page, file):
    blocks = docs_runner.blocks_of(ROOT / 'docs' / 'en' / f'{page}.md')
    text = next(block.text for block in blocks if block.text.startswith(f'# {file}\n'))
    assert len(without_comments(text)) <= 20


def test_few_examples_are_left_out_and_each_says_why():
    left_out = [(name_of(p), b.line, b.skip) for p in EXAMPLES for b in docs_runner.blocks_of(p) if b.skip is not None]
    assert len(left_out) <= MAX_SKIPPED, left_out
    assert all(len(reason) > 10 for _, _, reason in left_out)


def test_the_runner_sees_what_a_page_says(tmp_path):
    page = tmp_path / 'page.md'
    page.write_text(
        '`nervex -q policy` and `nervex -m eval -c CONFIG`\n\n```python\nx = 1\n```\n<!-- skip: has no end -->\n\n'
        '```bash\npip install x && nervex -v\n$ nervex -m serial \\\n  -c a\n```\n'
        '<!-- fails: 2 -->\n```bash\nnervex -x\n```\n',
        encoding='utf-8',
    )
    inline, code, skipped, fails = docs_runner.blocks_of(page)
    assert inline.text == 'nervex -q policy' and inline.line == 1
    assert (code.language, code.text, code.line) == ('python', 'x = 1', 4)
    assert skipped.skip == 'has no end' and fails.fails == 2 and code.skip is None
    assert docs_runner.commands_of(skipped.text) == ['nervex -v', 'nervex -m serial    -c a']
    assert docs_runner.arguments_of('nervex -m serial -c a')[-4:] == list(docs_runner.SHORT)


@pytest.mark.parametrize(
    'text, said',
    [
        ('```python\nassert 1 == 2\n```', 'AssertionError'),
        ('```bash\nnervex -m serial -c nowhere.py\n```', 'exit code 2'),
        ('<!-- fails: 2 -->\n```bash\nnervex -v\n```', 'exit code 0, expected 2'),
        ('```python\nimport os\nos._exit(3)\n```', 'ended its process'),
    ],
)
def test_a_page_that_is_wrong_fails(text, said, runner, tmp_path):
    page, folder = tmp_path / 'page.md', tmp_path / 'work'
    folder.mkdir()
    page.write_text(text, encoding='utf-8')
    runner.stdin.write(json.dumps([str(page), str(folder)]) + '\n')
    runner.stdin.flush()
    assert said in json.loads(runner.stdout.readline())['error']
