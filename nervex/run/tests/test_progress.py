"""Tests of the live line."""

import sys
import time
from types import SimpleNamespace

import pytest
from rich import get_console

from nervex.run.progress import Progress


@pytest.fixture
def run():
    cfg = SimpleNamespace(evaluator=SimpleNamespace(stop_val=195.0, stop_win_rate=None))
    evaluator = SimpleNamespace(last_mean=123.45, best=150.0, last_win_rate=None, cfg=cfg, history=[1])
    actor, learner = SimpleNamespace(total_step=0), SimpleNamespace(train_iter=98_765)
    return SimpleNamespace(
        actor=actor, learner=learner, evaluator=evaluator, cfg=cfg, commander=SimpleNamespace(limit=10_000_000)
    )


@pytest.fixture
def progress(run):
    made = Progress(run, enabled=False)
    made._start = time.perf_counter() - 100.0
    run.actor.total_step = 1_234_567
    yield made
    made.close()


@pytest.mark.parametrize(
    'width, shown',
    [
        (None, 'env steps 1,234,567 | updates 98,765 | SPEED | return 123.5 (best 150.0, stop at 195) | LEFT'),
        (105, 'env steps 1,234,567 | updates 98,765 | SPEED | return 123.5 (best 150.0) | LEFT'),
        (80, 'env steps 1,234,567 | return 123.5 (best 150.0) | LEFT'),
        (60, 'env steps 1,234,567 | return 123.5 | LEFT'),
        (40, 'env steps 1,234,567 | return 123.5'),
        (10, 'env steps 1,234,567'),
    ],
)
def test_a_line_too_long_for_its_width_leaves_out_the_least_important_parts(progress, width, shown):
    text = progress.line(width)
    parts = text.split(' | ')
    named = [('SPEED' if 'steps/s' in part else 'LEFT' if 'at most' in part else part) for part in parts]
    assert ' | '.join(named) == shown
    assert width is None or len(text) <= max(width, 19)


@pytest.mark.parametrize('width', [120, 80, 30, 12])
def test_on_a_terminal_the_line_has_one_row(run, monkeypatch, width):
    monkeypatch.setattr(sys.stdout, 'isatty', lambda: True, raising=False)
    monkeypatch.setattr(get_console(), '_width', width)
    progress = Progress(run, enabled=True)
    run.actor.total_step = 1_234_567
    progress.evaluating()
    assert len(get_console().render_lines(progress._live.renderable, pad=False)) == 1
    progress.close()
