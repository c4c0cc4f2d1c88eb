"""Two commits beside each other: what counts as slower."""

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
import compare


def test_a_row_is_slower_only_beyond_the_spread_of_its_measurements():
    values = {
        ('nervex', 'steady'): {'old': [100.0, 101.0, 99.0], 'new': [90.0, 91.0, 90.5]},
        ('nervex', 'scattered'): {'old': [100.0, 130.0, 90.0], 'new': [90.0, 91.0, 90.5]},
        ('nervex', 'faster'): {'old': [100.0], 'new': [140.0]},
        ('nervex', 'of one commit only'): {'old': [], 'new': [1.0]},
    }
    rows = {row.what: row for row in compare.rows_of('train', values)}
    assert set(rows) == {'nervex, steady', 'nervex, scattered', 'nervex, faster'}
    assert [row.slower for row in rows.values()] == [True, False, False]
    assert rows['nervex, faster'].ratio == pytest.approx(1.4)
    table = compare.table(list(rows.values())).splitlines()
    assert 'steady' in table[2] and table[2].endswith('| slower |') and 'faster' in table[-1]


def test_both_commits_are_checked_out_and_removed_again(monkeypatch, tmp_path):
    repository = tmp_path / 'repository'
    (repository / 'benchmark').mkdir(parents=True)
    git = ['git', '-C', str(repository), '-c', 'user.name=n', '-c', 'user.email=e']
    subprocess.run([*git, 'init', '-q'], check=True)
    for text in ('1', '2'):
        (repository / 'benchmark' / 'x_bench.py').write_text(text)
        subprocess.run([*git, 'add', '-A'], check=True)
        subprocess.run([*git, 'commit', '-q', '-m', text], check=True)
    monkeypatch.setattr(compare, 'HERE', repository / 'benchmark')
    with compare.checkouts('HEAD~1', 'HEAD') as homes:
        assert [(homes[side] / 'x_bench.py').read_text() for side in ('old', 'new')] == ['1', '2']
    assert not homes['old'].exists()
    listed = subprocess.run([*git, 'worktree', 'list'], capture_output=True, text=True, check=True).stdout
    assert len(listed.splitlines()) == 1
    with pytest.raises(SystemExit, match='no-such-commit'), compare.checkouts('no-such-commit', 'HEAD'):
        raise AssertionError
