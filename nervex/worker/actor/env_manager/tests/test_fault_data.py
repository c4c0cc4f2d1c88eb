"""What is in the replay buffer after an env went wrong, for each way to go wrong."""

import numpy as np
import pytest

from nervex.data import BufferManager
from nervex.worker.actor import BaseSerialActor
from nervex.worker.actor.env_manager import create_env_manager
from nervex.worker.actor.env_manager.tests.logged_env import LoggedEnv, Records
from nervex.worker.actor.env_manager.tests.managers import HangClock, nothing_left_behind
from nervex.worker.actor.tests.counting import Hooks, check_rows

ANSWERS = [
    'raise',
    'none',
    'shape',
    'broadcast',
    'dtype',
    'nan',
    'nan_reward',
    'none_reward',
    'bad_done',
    'abnormal',
    'reset_raise',
    'reset_none',
    'reset_shape',
    'reset_nan',
]
CRASHES = ['exit', 'kill', 'close_pipes', 'system_exit', 'reset_exit', 'reset_kill']
HANGS = ['sleep', 'reset_sleep']
CASES = [
    *[(kind, fault) for kind in ('base', 'sync_subprocess', 'async_subprocess') for fault in ANSWERS],
    *[(kind, fault) for kind in ('sync_subprocess', 'async_subprocess') for fault in CRASHES + HANGS],
    *[('thread', fault) for fault in ('raise', 'nan', 'reset_none', 'sleep')],
]
LENGTH = 5
LIMITS = dict(step_timeout=0.4, reset_timeout=0.4)  # of a HangClock


def collected(kind, env_cfgs, rounds, manager=None, launched=lambda manager: None, **actor_cfg):
    """Collect so many rounds into a buffer; answers all rows of the buffer. ``launched`` is told of the manager."""
    cfg = dict(retry_waiting_time=0.01, **(manager or {}))
    actor = BaseSerialActor(dict(collect_print_freq=0, traj_print_freq=0, **actor_cfg))
    buffer = BufferManager({'monitor': {'log_freq': 0}}, on_policy=True)
    try:
        actor.env = create_env_manager(kind, LoggedEnv, env_cfgs, cfg)
        actor.env.launch()
        launched(actor.env)
        actor.policy = Hooks().collect_mode()
        while rounds(actor):
            buffer.push_data(actor.generate_data(0)[0])
        (rows,) = buffer.batches(buffer.count(), 1)
        return rows, actor.env.faults
    finally:
        actor.close()


def faulty(tmp_path, fault, n=3):
    """Env 1 goes wrong once: in step 3 of its second or third episode, or when that one begins."""
    cfgs = [dict(tag=i, length=LENGTH, log_path=str(tmp_path / f'env_{i}')) for i in range(n)]
    cfgs[1].update(
        fault=fault, at=3, once_file=str(tmp_path / 'once'), episodes=[2, 3], hang_file=str(tmp_path / 'hangs')
    )
    return cfgs


def after_it(actor):
    """Until the fault has happened, and some episodes more."""
    return not actor.env.faults.total or actor.total_episode < 18


@pytest.mark.parametrize('kind,fault', CASES)
def test_buffer_has_whole_episodes_and_nothing_of_the_lost_one(kind, fault, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cfgs = faulty(tmp_path, fault)
    more = {}
    if fault in HANGS:
        cfgs[1]['seconds'] = 1.0 if kind == 'thread' else 3600.0
        more = dict(manager=LIMITS, launched=lambda manager: HangClock(monkeypatch, manager))
    with nothing_left_behind():
        rows, faults = collected(kind, cfgs, after_it, n_episode=3, traj_len='inf', **more)
    found, _ = check_rows(rows)
    assert len(set(found)) == len(found) and faults.per_env[0] == faults.per_env[2] == 0 and faults.per_env[1] == 1
    records = Records([cfg['log_path'] for cfg in cfgs])
    (lost,) = records.faults[1]
    assert not [row for row in found if row[:2] == (1, lost[0])]
    for tag, ended in records.ended.items():
        episodes = sorted({row[1] for row in found if row[0] == tag})
        assert episodes == [episode for episode, _ in ended][: len(episodes)] and len(ended) - len(episodes) <= 1
        assert [row for row in sorted(found) if row[0] == tag] == [
            (tag, episode, step) for episode in episodes for step in range(1, LENGTH + 1)
        ]


@pytest.mark.parametrize('kind', ['base', 'sync_subprocess', 'async_subprocess'])
@pytest.mark.parametrize('window', [1, 4])
def test_windows_that_were_handed_out_stay_and_the_rest_is_dropped(kind, window, tmp_path, monkeypatch):
    """With windows of w steps a fault takes the steps of the present window; none of them is split over the fault."""
    monkeypatch.chdir(tmp_path)
    cfgs = faulty(tmp_path, 'raise')
    rows, _ = collected(kind, cfgs, after_it, n_sample=3 * window, traj_len=window)
    found, _ = check_rows(rows)
    records = Records([cfg['log_path'] for cfg in cfgs])
    ((episode, step, _),) = records.faults[1]
    assert len(set(found)) == len(found)
    of_lost = sorted(row[2] for row in found if row[:2] == (1, episode))
    assert of_lost == list(range(1, len(of_lost) + 1)) and len(of_lost) < step
    if window == 1:
        assert of_lost == [1, 2]  # true steps, each a sample of its own, handed out before the fault


KINDS = [
    'raise',
    'exit',
    'kill',
    'close_pipes',
    'system_exit',
    'sleep',
    'shape',
    'broadcast',
    'dtype',
    'nan',
    'none',
    'nan_reward',
    'none_reward',
    'bad_done',
    'abnormal',
    'reset_raise',
    'reset_kill',
    'reset_exit',
    'reset_none',
    'reset_shape',
    'reset_nan',
    'reset_sleep',
]


def soak(kind, steps, rate, tmp_path, monkeypatch, **manager):
    """Collect so many steps from 8 envs that go wrong at random; every transition is accounted for."""
    monkeypatch.chdir(tmp_path)
    cfgs = [
        dict(
            tag=i,
            length=40 + i,
            log_path=str(tmp_path / f'env_{i}'),
            rate=rate,
            kinds=KINDS,
            seconds=3600.0,
            hang_file=str(tmp_path / f'hangs_{i}'),
        )
        for i in range(8)
    ]
    with nothing_left_behind():
        rows, faults = collected(
            kind,
            cfgs,
            lambda actor: actor.total_step < steps,
            {**LIMITS, **manager},
            lambda manager: HangClock(monkeypatch, manager),
            n_episode=20,
            traj_len='inf',
        )
    found, _ = check_rows(rows)
    records = Records([cfg['log_path'] for cfg in cfgs])
    assert len(set(found)) == len(found)
    table = np.array(found)
    for tag, ended in records.ended.items():
        mine = table[table[:, 0] == tag]
        episodes, lengths = np.unique(mine[:, 1], return_counts=True)
        delivered = list(zip(episodes.tolist(), lengths.tolist()))
        assert delivered == ended[: len(delivered)]  # each episode that ended well, whole, and no other
        assert len(ended) - len(delivered) <= 1  # the last one may not have been answered yet
        lost = {episode for episode, _, _ in records.faults[tag]}
        assert not lost & set(episodes.tolist())
        told = len(records.faults[tag])
        assert told - 1 <= faults.per_env[tag] <= told  # the same for a fault
    return len(found), records


@pytest.mark.parametrize('kind', ['sync_subprocess', 'async_subprocess'])
def test_short_soak(kind, tmp_path, monkeypatch):
    good, records = soak(kind, 1500, 1 / 150, tmp_path, monkeypatch)
    assert good > 500 and records.fault_count >= 3


@pytest.mark.slow
@pytest.mark.parametrize(
    'kind,more',
    [
        ('sync_subprocess', {}),
        ('async_subprocess', {}),
        ('async_subprocess', dict(retry_type='renew', wait_num=4)),
    ],
)
def test_soak_of_200_000_steps(kind, more, tmp_path, monkeypatch):
    good, records = soak(kind, 200_000, 1 / 500, tmp_path, monkeypatch, **more)
    kinds = {kind for faults in records.faults.values() for _, _, kind in faults}
    assert good > 150_000 and records.fault_count > 250 and len(kinds) >= 15
