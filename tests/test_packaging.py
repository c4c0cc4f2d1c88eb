"""What is released is whole and says the same everywhere. The release itself is tried by `make release-check`."""

import importlib.util
import re
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml

from nervex.version import __VERSION__

ROOT = Path(__file__).resolve().parents[1]


def test_the_version_has_a_section_in_the_changelog_or_is_unreleased():
    headings = re.findall(r'^## (.+)$', (ROOT / 'CHANGELOG.md').read_text(encoding='utf-8'), flags=re.M)
    versions = [re.fullmatch(r'(\d+\.\d+\.\d+) \(\d{4}-\d\d-\d\d\)', heading) for heading in headings[1:]]
    assert headings[0] == 'Unreleased' or headings[0].startswith(f'{__VERSION__} ('), headings
    assert all(versions), 'sections below Unreleased are called "1.2.3 (2026-01-31)"'
    numbers = [tuple(map(int, found[1].split('.'))) for found in versions]
    assert numbers == sorted(numbers, reverse=True)
    assert all(number <= tuple(map(int, __VERSION__.split('.'))) for number in numbers)


def test_the_citation_names_the_version():
    assert yaml.safe_load((ROOT / 'CITATION.cff').read_text(encoding='utf-8'))['version'] == __VERSION__


def test_forms_for_issues_have_what_a_form_needs():
    forms = [path for path in (ROOT / '.github' / 'ISSUE_TEMPLATE').glob('*.yml') if path.name != 'config.yml']
    assert len(forms) == 3
    for form in forms:
        text = yaml.safe_load(form.read_text(encoding='utf-8'))
        assert {'name', 'description', 'body'} <= set(text), form
        ids = [part['id'] for part in text['body']]
        assert len(ids) == len(set(ids)) and all(part['attributes'] for part in text['body']), form


def test_the_image_takes_the_torch_of_the_package():
    bound = re.search(r"'torch(\S+)'", (ROOT / 'setup.py').read_text(encoding='utf-8'))[1]
    assert f'"torch{bound}"' in (ROOT / 'Dockerfile').read_text(encoding='utf-8')


def test_the_readme_names_every_extra():
    setup, readme = ((ROOT / name).read_text(encoding='utf-8') for name in ('setup.py', 'README.md'))
    extras = re.findall(r"^    '(\w+)': \[", re.search(r'^extras = \{.+?^\}', setup, flags=re.M | re.S)[0], flags=re.M)
    text = readme.split('## Extras')[1]
    assert len(extras) > 20
    assert [name for name in extras if f'`{name}`' not in text and f'[{name}]' not in text] == []


def test_contents_of_a_release_are_compared_with_what_is_tracked(tmp_path):
    spec = importlib.util.spec_from_file_location('release_contents', ROOT / '.ci' / 'release_contents.py')
    contents = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(contents)
    (tmp_path / 'a.py').write_text('')
    with tarfile.open(tmp_path / 's.tar.gz', 'w:gz') as archive:
        archive.add(tmp_path / 'a.py', 'nervex-1/nervex/a.py')
    with zipfile.ZipFile(tmp_path / 'w.whl', 'w') as archive:
        archive.write(tmp_path / 'a.py', 'nervex/a.py')
    tracked = ['.gitignore', 'nervex/a.py', 'nervex/py.typed', 'nervex/tests/test_a.py']
    lacking = contents.missing(str(tmp_path / 's.tar.gz'), str(tmp_path / 'w.whl'), tracked)
    assert lacking == {'sdist': ['nervex/py.typed', 'nervex/tests/test_a.py'], 'wheel': ['nervex/py.typed']}


@pytest.mark.slow
def test_a_release_is_whole():
    done = subprocess.run(['make', 'release-check'], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and 'all well' in done.stdout, done.stdout[-2000:] + done.stderr[-3000:]
