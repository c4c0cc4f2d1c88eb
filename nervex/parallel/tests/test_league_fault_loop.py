"""A league on Ray whose actors, learners and driver are killed goes on, counts nothing twice and loses no snapshot."""

import os
import random
import signal
import subprocess
import time

import pytest
import yaml

pytest.importorskip('ray')

from nervex.parallel.tests.test_fault_loop import COMMAND, below
from nervex.parallel.tests.test_league_run import NAMES, config
from nervex.run.state import newest_state
from nervex.utils.file_helper import read_file

LIVES, KILLS = 3, 5  # of the driver; of roles in each of them


def state_of(folder):
    """The newest state of the league, of which everything that it knows is there; None before the first."""
    _, state = newest_state(str(folder / 'league'))
    if state is None:
        return None
    counts = state['league']['payoff']['counts'][3]
    games = round(float(counts.sum() + counts.diagonal().sum()) / 2)
    assert games == sum(player['games'] for player in state['players'].values())
    assert not any(player['doubles'] for player in state['players'].values())
    for _, path, name, steps, _ in state['league']['historical']:
        assert name.endswith(f'_{steps}') and read_file(path)['last_iter'] == steps
    return state


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_roles_and_the_driver_of_a_league_are_killed_and_it_goes_on_each_time(tmp_path, request):
    folder, chance, past, games = tmp_path / 'run', random.Random(0), [], [0]
    cfg = config(folder)
    cfg['commander'].update(max_train_iter=10**6, snapshot_keep=10**6)
    cfg['parallel'].update(carrier='ray', actor_num=1, save_s=0.5, restarts=50)
    for player in cfg['commander']['league'].values():
        if 'one_phase_step' in player:
            player['one_phase_step'] = 40
    (tmp_path / 'config.yaml').write_text(yaml.safe_dump(cfg), encoding='utf-8')
    start = ['-c', str(tmp_path / 'config.yaml'), '-s', '0']
    for life in range(LIVES):
        process = subprocess.Popen([*COMMAND, *start], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        request.addfinalizer(process.kill)
        start = ['--resume', str(folder)]
        if life:
            games.append(sum(player['games'] for player in state_of(folder)['players'].values()))

        def wait(condition, process=process):
            until = time.monotonic() + 120
            while not condition():
                assert time.monotonic() < until and process.poll() is None, process.communicate()[0]
                time.sleep(0.5)

        def gone_on():
            state = state_of(folder)
            return state is not None and sum(p['games'] for p in state['players'].values()) > games[-1]

        wait(gone_on)
        for _ in range(KILLS):
            alive = [pid for pid, args in below(process).items() if args.startswith('ray::Host')]
            os.kill(chance.choice(alive), signal.SIGKILL)
            state = state_of(folder)
            assert past == [name for _, _, name, _, _ in state['league']['historical']][: len(past)]
            past = [name for _, _, name, _, _ in state['league']['historical']]
            games.append(sum(player['games'] for player in state['players'].values()))
            wait(gone_on)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    state = state_of(folder)
    names = [name for _, _, name, _, _ in state['league']['historical']]
    assert names[: len(past)] == past and len(names) == len(set(names)) >= 3
    assert games == sorted(games) and set(state['players']) == set(NAMES)
