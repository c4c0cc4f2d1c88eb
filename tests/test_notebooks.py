"""The notebooks of docs/notebooks run from their first cell to the last, and are stored without output."""

import json
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / 'docs' / 'notebooks').glob('*.ipynb'))


@pytest.mark.parametrize('path', NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_without_output(path):
    cells = json.loads(path.read_text(encoding='utf-8'))['cells']
    assert not any(cell.get('outputs') or cell.get('execution_count') for cell in cells)


@pytest.mark.slow
@pytest.mark.parametrize('path', NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path, monkeypatch):
    needs = 'notebooks need the extra docs: pip install -e ".[docs]"'
    nbclient, nbformat = (pytest.importorskip(name, reason=needs) for name in ('nbclient', 'nbformat'))
    pytest.importorskip('ipykernel', reason=needs)
    monkeypatch.setenv('PYTHONPATH', os.pathsep.join([str(ROOT), os.environ.get('PYTHONPATH', '')]))
    monkeypatch.setenv('OMP_NUM_THREADS', '1')
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, resources={'metadata': {'path': str(tmp_path)}}).execute()
    said = [output for cell in notebook.cells for output in cell.get('outputs', ())]
    assert any(output.get('name') == 'stdout' for output in said)
