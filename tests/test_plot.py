"""Learning curves: which runs belong together, their mean and band by hand, and the two files of the picture."""

import csv
import struct
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
import zlib
from pathlib import Path

import numpy as np
import pytest
import yaml

from nervex.config import save_config
from nervex.entry.cli import main
from nervex.entry.plot_entry import band, group_runs, read_runs, unfailed
from nervex.run.curve import draw_curve, round_numbers

COLUMNS = ('train_iter', 'env_step', 'seconds', 'return_mean')


@pytest.fixture
def write_run(tmp_path):
    """A function that writes what a run leaves for the plot: the config and (env step, return) pairs."""

    def write(name, points, policy='dqn', lr=0.001, stop_val=None, seed=0, log='log'):
        config = {
            'exp_name': name,
            'seed': seed,
            'env': {'env_type': 'cartpole', 'env_id': None},
            'policy': {'policy_type': policy, 'learn': {'learning_rate': lr}},
            'evaluator': {'stop_val': stop_val},
            'learner': {'resume': {'interval_s': float(seed)}, 'hook': {}},
        }
        folder = tmp_path / name / log
        (folder / 'evaluator').mkdir(parents=True)
        (folder / 'config.yaml').write_text(yaml.safe_dump(config), encoding='utf-8')
        with open(folder / 'evaluator' / 'curve.csv', 'w', newline='', encoding='utf-8') as f:
            writer = csv.writer(f)
            writer.writerow(COLUMNS)
            writer.writerows([step // 2, step, step / 100, value] for step, value in points)
        return folder

    return write


def nervex(*args, **kwargs):
    command = [sys.executable, '-m', 'nervex.entry.cli', '-m', 'plot', *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, **kwargs)


def test_seeds_of_one_config_are_one_group_and_other_settings_another(write_run):
    for seed in (0, 1):
        write_run(f'runs/a{seed}', [(0, 1), (10, 2)], seed=seed)
    write_run('runs/b', [(0, 1), (10, 2)], lr=0.01)
    write_run('runs/c', [(0, 1), (10, 2)], policy='ppo')
    groups = group_runs(read_runs(['runs']))
    assert {label: len(group) for label, group in groups.items()} == {
        'cartpole dqn (learning_rate=0.001)': 2,
        'cartpole dqn (learning_rate=0.01)': 1,
        'cartpole ppo': 1,
    }


def test_mean_and_band_of_two_runs_by_hand(write_run):
    """At step 5: runs at 1 and 3, mean 2; the band of few runs goes from one to the other."""
    write_run('a', [(0, 0), (10, 2)])
    write_run('b', [(0, 2), (10, 4)], seed=1)
    x, mean, low, high = band(read_runs(['a', 'b']))
    at_5 = np.argmin(abs(x - 5))
    assert x[0] == 0 and x[-1] == 10
    assert mean[at_5] == pytest.approx(2 + (x[at_5] - 5) / 5)
    assert low == pytest.approx(mean - 1) and high == pytest.approx(mean + 1)


def test_mean_and_band_of_five_runs_by_hand(write_run):
    """Constant at 1, 2, 3, 6, 8: mean 4, variance (9 + 4 + 1 + 4 + 16) / 4 = 8.5, half width 2.78 * sqrt(8.5 / 5)."""
    for seed, value in enumerate((1, 2, 3, 6, 8)):
        write_run(f'r{seed}', [(0, value), (10, value)], seed=seed)
    _, mean, low, high = band(read_runs(['.']))
    half = 2.78 * (8.5 / 5) ** 0.5
    assert mean == pytest.approx(4) and low == pytest.approx(4 - half) and high == pytest.approx(4 + half)


def test_one_run_is_its_own_mean_without_a_band(write_run):
    write_run('a', [(0, 1), (7, 5), (9, 3)])
    x, mean, low, high = band(read_runs(['.']))
    assert x.tolist() == [0, 7, 9] and mean.tolist() == low.tolist() == high.tolist() == [1, 5, 3]


def test_a_solved_run_goes_on_and_an_unsolved_one_ends_the_mean(write_run):
    write_run('a', [(0, 0), (10, 100)], stop_val=100)
    write_run('b', [(0, 0), (30, 60)], seed=1, stop_val=100)
    write_run('c', [(0, 0), (40, 80)], seed=2, stop_val=100)
    x, mean, *_ = band(read_runs(['.']))
    assert x[-1] == 30  # not 10: the first run was solved and stays at 100; not 40: the second is not there any more
    assert mean[-1] == pytest.approx((100 + 60 + 60) / 3)


def test_a_failed_run_is_left_out_of_the_mean_unless_all_have_failed(write_run):
    whole, failed = write_run('a', [(0, 0), (10, 100)]), write_run('b', [(0, 0)], seed=1)
    (failed / 'run.yaml').write_text('{checkpoints: ckpt, seed: 1, state: failed}', encoding='utf-8')
    curves = read_runs(['.'])
    assert [curve.state for curve in curves] == ['finished', 'failed']
    assert [curve.folder for curve in unfailed(curves)] == [str(whole.parent)]
    assert unfailed(curves[1:]) == curves[1:]
    (failed / 'run.yaml').write_text('[', encoding='utf-8')
    assert read_runs(['b'])[0].state == 'damaged'


def test_a_half_written_row_and_older_logs_are_left_out(write_run, tmp_path):
    folder = write_run('a', [(0, 1), (10, 2)])
    with open(folder / 'evaluator' / 'curve.csv', 'a', encoding='utf-8') as f:
        f.write('10,20')
    write_run('a', [(0, 7)], log='log_1')
    (curve,) = read_runs(['a', str(tmp_path / 'a'), 'a/log'])
    assert curve.mean.tolist() == [1, 2]
    (older,) = read_runs(['a/log_1'])
    assert older.mean.tolist() == [7]


@pytest.mark.parametrize('axis, end', [('env_step', 10), ('train_iter', 5), ('seconds', 0.1)])
def test_axis(write_run, axis, end):
    write_run('a', [(0, 1), (10, 2)])
    assert read_runs(['a'], axis)[0].x[-1] == end


def test_unknown_axis_is_an_error():
    with pytest.raises(ValueError, match='env_step, train_iter, seconds'):
        read_runs(['.'], 'epochs')


@pytest.mark.parametrize('kind', ['missing', 'empty', 'not evaluated', 'no config'])
def test_a_folder_without_a_run_is_one_clear_error(write_run, tmp_path, kind):
    if kind == 'empty':
        (tmp_path / 'x').mkdir()
    elif kind == 'not evaluated':
        write_run('x', [])
    elif kind == 'no config':
        (write_run('x', [(0, 1)]) / 'config.yaml').unlink()
    result = nervex('x')
    assert result.returncode == (1 if kind == 'no config' else 2) and len(result.stderr.splitlines()) == 1
    said = {'missing': 'no such folder', 'no config': 'config.yaml: missing'}.get(kind, 'no run that was evaluated')
    assert result.stderr.startswith('error: x') and said in result.stderr


def test_no_folder_at_all_is_wrong_usage():
    result = nervex()
    assert result.returncode == 2 and 'FOLDER' in result.stderr


def test_without_matplotlib_one_line_names_the_extra(write_run, tmp_path):
    write_run('x', [(0, 1)])
    (tmp_path / 'matplotlib.py').write_text("raise ImportError('not here')", encoding='utf-8')
    result = nervex('x', env={'PYTHONPATH': f'{tmp_path}:{":".join(p for p in sys.path if p)}', 'PATH': ''})
    assert result.returncode == 1 and len(result.stderr.splitlines()) == 1
    assert "pip install 'nervex[plot]'" in result.stderr


def test_the_picture_holds_labels_units_title_and_a_line_for_solved(write_run, tmp_path):
    pyplot = pytest.importorskip('matplotlib.pyplot')
    for seed in (0, 1, 2):
        write_run(f'runs/a{seed}', [(0, 10), (5000, 150 + seed)], seed=seed, stop_val=195)
    write_run('runs/b', [(0, 10), (5000, 200)], lr=0.01, stop_val=195)
    from nervex.entry.plot_entry import plot

    with pyplot.rc_context({'svg.fonttype': 'none'}):
        files = plot(['runs'], out='pictures/both.png', title='CartPole, two rates')
    assert files == ['pictures/both.png', 'pictures/both.svg']
    text = ' '.join(ElementTree.parse(files[1]).getroot().itertext())
    for said in (
        'CartPole, two rates',
        'env steps',
        'mean return of an evaluation',
        'cartpole dqn (learning_rate=0.001): mean of 3 runs, lowest to highest',
        'cartpole dqn (learning_rate=0.01)',
        'solved at 195',
        '5k',
    ):
        assert said in text
    image = pyplot.imread(files[0])
    assert image.shape[0] > 600 and image.shape[1] > 1000 and image.std() > 0.05


def test_times_are_told_in_seconds(write_run):
    pyplot = pytest.importorskip('matplotlib.pyplot')
    write_run('x', [(0, 3), (50, 4)])
    from nervex.entry.plot_entry import plot

    with pyplot.rc_context({'svg.fonttype': 'none'}):
        files = plot(['x'], axis='seconds')
    text = list(ElementTree.parse(files[1]).getroot().itertext())
    assert '0.5 s' in text and 'time' in text


def test_one_evaluation_alone_can_be_drawn(write_run):
    pytest.importorskip('matplotlib')
    from nervex.entry.plot_entry import plot

    write_run('x', [(0, 3)])
    assert plot(['x']) == ['curves.png', 'curves.svg']


def pixels_of(path):
    """An (H, W, 3) array of a PNG with rows of filter type 0, as ours are."""
    data = Path(path).read_bytes()
    width, height = struct.unpack('>II', data[16:24])
    start = data.index(b'IDAT')
    rows = np.frombuffer(zlib.decompress(data[start + 4 : data.index(b'IEND') - 8]), np.uint8)
    return rows.reshape(height, 1 + 3 * width)[:, 1:].reshape(height, width, 3)


def test_the_curve_of_a_run_is_drawn_without_a_plotting_package_by_hand(tmp_path):
    """
    960 x 600; 0 to 10 env steps are x = 100 to 930. Episodes and ``stop_val`` reach from 1 to 5, with a margin of 0.12
    to both sides, over y = 78 to 524 from above: a return of 3 lies in the middle, at 301.
    """
    path = tmp_path / 'curve.csv'
    path.write_text('train_iter,env_step,return_mean,return_min,return_max\n0,0,1,1,1\n5,10,3,2,4\n', encoding='utf-8')
    picture = pixels_of(draw_curve(str(path), 'a < b', 5.0))
    assert picture.shape == (600, 960, 3) and tuple(picture[5, 5]) == (255, 255, 255)
    blue, band = (31, 95, 191), (211, 225, 245)
    assert tuple(picture[301, 929]) == tuple(picture[510, 101]) == blue  # the last point, and the first
    assert tuple(picture[406, 515]) == blue  # half way the return is 2, in a band from 1.5 to 2.5
    assert tuple(picture[440, 515]) == tuple(picture[370, 515]) == band
    assert tuple(picture[480, 515]) == tuple(picture[340, 515]) == (255, 255, 255)
    stop = round(524 - 446 * (5 - 0.88) / 4.24)
    assert picture[stop - 2 : stop + 2, 100:930].min() < 140  # a dashed line: dark, with gaps
    assert picture[stop - 2 : stop + 2, 100:930, 0].min(0).max() > 220


def test_a_run_draws_its_curve_and_shows_it_where_that_is_wanted(short_dqn, monkeypatch, capsys):
    shown = []
    monkeypatch.setattr('webbrowser.open', lambda url: shown.append(url))
    save_config(short_dqn, 'config.yaml')
    main(['-m', 'serial', '-c', 'config.yaml', '-s', '0', '--show-fig'])
    assert (pixels_of('log/evaluator/curve.png') == (31, 95, 191)).all(2).sum() > 100
    assert len(shown) == 1 and shown[0].startswith('file:///') and shown[0].endswith('log/evaluator/curve.png')
    assert 'nothing here can show' in capsys.readouterr().err


def test_nothing_is_drawn_of_a_run_without_evaluations(tmp_path):
    assert draw_curve(str(tmp_path / 'curve.csv'), 'x', None) is None and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    'low, high, marks',
    [
        (0, 1848, [0, 500, 1000, 1500]),
        (-264.5, -22.16, [-250, -200, -150, -100, -50]),
        (0, 200_000, [0, 50_000, 100_000, 150_000, 200_000]),
        (0.1, 0.45, [0.1, 0.2, 0.3, 0.4]),
        (7, 7, [7]),
    ],
)
def test_an_axis_is_marked_by_round_numbers(low, high, marks):
    assert round_numbers(low, high) == pytest.approx(marks)
