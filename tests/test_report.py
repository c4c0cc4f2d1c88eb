"""The report of runs: what is on the page, what it looks like in a browser, what is refused."""

import contextlib
import os
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import yaml

from nervex.entry import serial_pipeline
from nervex.entry.cli import main
from nervex.entry.report_entry import _events, _thinned, report
from nervex.entry.report_page import Line, chart, shown_number, split
from nervex.envs.tests.fakes import FaultyEnv
from nervex.run.folder import RunFolder

GIF = b'GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff!\xf9\x04\x01\x00\x00\x00\x00,' + (
    b'\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;'
)


@pytest.fixture
def runs(short_ppo, short_dqn):
    """Two seeds of one config, one of which has warned, and a run of another algorithm without sinks of events."""
    short_ppo.events = ['tensorboard']
    short_ppo.commander.max_env_step, short_ppo.evaluator.eval_freq = 640, 2
    short_ppo.learner = short_dqn.learner = dict(hook=dict(log_show=dict(ext_args=dict(freq=2))))
    for seed in (0, 1):
        serial_pipeline(short_ppo, seed, overrides=(f'exp_name=runs/ppo_{seed}',))
    serial_pipeline(short_dqn, 0, overrides=('exp_name=runs/dqn',))
    Path('runs/ppo_0/video').mkdir()
    Path('runs/ppo_0/video/best.gif').write_bytes(GIF)
    warned = 'env 3: crash in step (its fault number 1); <it> restarts\n'
    Path('runs/ppo_1/output.txt').write_text(f'env steps 0\n{warned}{warned}', encoding='utf-8')
    return 'runs'


class Page(HTMLParser):
    """The texts of a page by the tags that they are in; a tag that is not closed is an error."""

    def __init__(self, path):
        super().__init__()
        self.open, self.texts, self.links = [], {}, []
        self.feed(Path(path).read_text(encoding='utf-8'))
        assert not self.open

    def handle_starttag(self, tag, attrs):
        if tag not in ('meta', 'link', 'img', 'path') or (tag == 'path' and 'stroke-width' in dict(attrs)):
            self.open.append(tag)
        self.links += [value for name, value in attrs if name in ('src', 'href')]
        assert tag != 'script'

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data)


def test_a_page_tells_all_of_its_runs_and_asks_no_network(runs):
    report([runs], 'pages/report.html', 'a < b & c')
    page = Page('pages/report.html')
    assert page.texts['h1'] == ['a < b & c']
    assert all(link.startswith('data:') for link in page.links) and any('image/gif' in link for link in page.links)
    heads = page.texts['h2']
    for said in ('Final returns', 'Runs', 'Video', 'Losses', 'Gradient norms', 'Q values and values', 'Time', 'Faults'):
        assert said in heads
    cells, captions = page.texts['td'], page.texts['figcaption']
    assert {'cartpole ppo', 'cartpole dqn', 'runs/ppo_0', 'runs/dqn', 'limit reached'} <= set(cells)
    assert {'learner/total_loss', 'learner/q_value', 'evaluator/length_mean'} <= set(captions)
    assert cells.count('env 3: crash in step; <it> restarts (2 times)') == 1
    row = cells.index('actor.n_sample')
    assert cells[row + 1 : row + 3] == ['None', '8']  # the default, and what the first config has
    assert any('lowest to highest' in text for text in page.texts['p'])
    assert any(re.match(r'learning [\d.]+ s, \d+ %', text) for text in page.texts['li'])


def test_a_failed_run_counts_in_no_mean(runs):
    path = Path('runs/ppo_1/log/run.yaml')
    path.write_text(path.read_text(encoding='utf-8').replace('state: finished', 'state: failed'), encoding='utf-8')
    report([runs])
    page = Page('report.html')
    row = page.texts['td'].index('cartpole ppo')
    assert page.texts['td'][row + 1] == '1' and '1 failed' in page.texts['td'][row : row + 8]
    assert 'Means, bands and this table leave failed runs out.' in page.texts['p']


def test_faults_of_a_run_are_told_with_their_times(short_dqn):
    """An env that crashes now and then; the run is killed, gone on with, and fails."""
    shaky = (FaultyEnv, [dict(), dict(fault='raise', at=3, episodes=[2, 4], tag=1)], [dict()])
    serial_pipeline(short_dqn, 0, shaky, overrides=('exp_name=runs/shaky',))
    with contextlib.suppress(RuntimeError), RunFolder('runs/shaky', resume=True) as folder:
        folder.note(state='running')
        folder.goes_on()
        raise RuntimeError('no power')
    report(['runs/shaky'])
    cells = Page('report.html').texts['td']
    # the first is a row of the table of runs
    rows = [cells[n : n + 3] for n, cell in enumerate(cells) if cell == 'runs/shaky'][1:]
    dates, said = [when for _, when, _ in rows], [what for _, _, what in rows]
    assert all(re.match(r'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d', when) for when in dates)
    assert said[0] == (
        'env 1: error in step; its unfinished episode is dropped, it restarts: RuntimeError: deliberate error of env 1 '
        '(2 times)'
    )
    assert said[1:] == ['the run was killed; it goes on from its newest saved state', 'RuntimeError: no power']


def test_nothing_that_a_foreign_config_names_is_imported(runs):
    Path('evil.py').write_text("raise SystemExit('imported')", encoding='utf-8')
    path = Path('runs/dqn/log/config.yaml')
    config = yaml.safe_load(path.read_text(encoding='utf-8'))
    config['env']['import_names'] = config['policy']['import_names'] = ['evil']
    config['env']['env_type'] = 'evil'
    path.write_text(yaml.safe_dump(config), encoding='utf-8')
    assert report(['runs/dqn']) == 'report.html'


def test_a_chart_by_hand():
    """
    Values 0 to 10 with a margin of 0.4: from above, 10 is at 0.4 / 10.8 = 37 of 1000 and 0 at 10.4 / 10.8 = 963. NaN is
    left out; a stop far off is, too.
    """
    x, y = np.array([0.0, 50.0, 100.0]), np.array([0.0, np.nan, 10.0])
    drawn = chart('a < b', [Line(0, 'one', x, y, y, y, [(x, y)])], stops=(5.0, 1000.0))
    assert 'd="M0,963L1000,37"' in drawn and '<title>one: last 10</title>' in drawn and 'a &lt; b' in drawn
    assert drawn.count('class="stop"') == 1 and 'd="M0,500H1000"' in drawn
    assert chart('x', [Line(0, 'one', x, y * np.nan, y, y, [(x, y * np.nan)])]) == ''


def test_numbers_at_axes_are_short():
    assert [shown_number(v) for v in (0, 0.25, 1500, 2e6, -3e9, 12.345)] == ['0', '0.25', '1.5k', '2M', '-3G', '12.3']


def test_points_of_one_step_are_averaged_and_long_lines_thinned():
    x, y = _thinned(np.array([[2.0, 5.0], [1.0, 1.0], [1.0, 3.0]]))
    assert x.tolist() == [1, 2] and y.tolist() == [2, 5]
    x, y = _thinned(np.stack([np.arange(1000.0), np.ones(1000)], axis=1))
    assert len(x) == 150 and x[0] == 3 and y.tolist() == [1.0] * 150  # the mean of 0 to 6


def test_a_bar_has_the_shares_of_a_whole():
    drawn = split([('a', 1.0), ('b', 3.0)])
    assert 'width:25.00%' in drawn and 'b 3.0 s, 75 %' in drawn


def test_a_half_written_event_is_left_out(runs):
    (path,) = Path('runs/ppo_0/log').glob('events*')
    whole = list(_events(str(path)))
    path.write_bytes(path.read_bytes()[:-3])
    assert 0 < len(list(_events(str(path)))) < len(whole)


@pytest.mark.parametrize(
    'arguments, said',
    [
        (['nowhere'], 'nowhere: there is no such folder'),
        (['empty'], 'empty: holds no run that was evaluated'),
        (['empty', '-o', 'there.html'], 'there.html: is there already; --force replaces it'),
    ],
)
def test_what_is_wrong_is_one_line(arguments, said, capsys):
    Path('empty').mkdir()
    Path('there.html').touch()
    with pytest.raises(SystemExit) as left:
        main(['report', *arguments])
    (line,) = capsys.readouterr().err.splitlines()
    assert left.value.code == 2 and said in line and not Path('report.html').exists()


CHROMIUM = next(filter(None, map(shutil.which, ('chromium', 'chromium-browser', 'google-chrome'))), None)
FRAME = """<iframe src="report.html" style="border:0;width:{}px;height:900px"></iframe><script>onload = () => {{
const w = frames[0], d = w.document.documentElement, color = w.getComputedStyle(w.document.body).backgroundColor;
document.title = [d.scrollWidth - d.clientWidth, w.performance.getEntriesByType('resource').length, color].join(';')
}}</script>"""


@pytest.mark.skipif(CHROMIUM is None, reason='chromium is not installed: no browser is on PATH')
def test_in_a_browser_nothing_overflows_is_asked_for_or_goes_wrong(runs):
    main(['report', runs])
    profile = f'--user-data-dir={os.path.abspath("profile")}'
    still = ('--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', profile)
    for width, scheme, paper in ((400, 1, '255, 255, 255'), (1200, 0, '21, 22, 27')):
        Path('frame.html').write_text(FRAME.format(width), encoding='utf-8')
        options = ('--allow-file-access-from-files', '--enable-logging=stderr', f'--window-size={max(width, 600)},900')
        command = [CHROMIUM, *still, *options, f'--blink-settings=preferredColorScheme={scheme}', '--dump-dom']
        shown = subprocess.run(
            [*command, Path('frame.html').absolute().as_uri()], capture_output=True, text=True, timeout=120
        )
        assert f'<title>0;0;rgb({paper})</title>' in shown.stdout and 'CONSOLE' not in shown.stderr
