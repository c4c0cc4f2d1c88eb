"""Every kind of env manager, and a driver that checks each transition against CounterEnv."""

import contextlib
import os
import re
import threading
import time
from types import SimpleNamespace

import numpy as np

from nervex.envs.tests.fakes import AsyncCounterEngine, CounterEngine, CounterEnv
from nervex.worker.actor.env_manager import (
    AsyncSubprocessEnvManager,
    AsyncVectorEnvManager,
    BaseEnvManager,
    SyncSubprocessEnvManager,
    ThreadEnvManager,
    VectorEnvManager,
    groups,
    running,
)

CLOCKED = (groups, running)  # the modules that know of timeouts
FAST = dict(retry_waiting_time=0.01)
KINDS = {
    'base': (BaseEnvManager, {}),
    'sync': (SyncSubprocessEnvManager, {}),
    'sync_grouped': (SyncSubprocessEnvManager, dict(envs_per_worker=2)),
    'sync_hybrid': (SyncSubprocessEnvManager, dict(hybrid=True)),
    'sync_pipe': (SyncSubprocessEnvManager, dict(shared_memory=False)),
    'async': (AsyncSubprocessEnvManager, {}),
    'async_grouped': (AsyncSubprocessEnvManager, dict(envs_per_worker=2)),
    'thread': (ThreadEnvManager, {}),
    'vector': (VectorEnvManager, {}),
    'vector_same_step': (VectorEnvManager, {}),
    'vector_async': (AsyncVectorEnvManager, {}),
}
SINGLE = [k for k in KINDS if not k.startswith('vector')]  # each env on its own
PROCESSES = ['sync', 'sync_grouped', 'async', 'async_grouped']  # no env in this process


def build(kind, cfgs, env=CounterEnv, episode_num=None, launch=True, **manager_cfg):
    cls, kind_cfg = KINDS[kind]
    if kind == 'vector_same_step':

        def env(cfgs):
            return CounterEngine(cfgs, same_step=True)

    if kind == 'vector_async':

        def env(cfgs):
            return AsyncCounterEngine(cfgs, manager_cfg.get('wait_num', 2))

    manager = cls(env, cfgs, len(cfgs), episode_num, {**FAST, **kind_cfg, **manager_cfg})
    if launch:
        manager.launch()
    return manager


def first(obs):
    """The leaf that tells env, episode, step and last action."""
    return obs['vector'] if isinstance(obs, dict) else obs


def drive(manager, rounds, seed=0, until=None):
    """
    Run the block form with random actions; answers env_id -> list of (obs, action, reward, next_obs, done, truncated)
    and env_id -> how often an episode was dropped. Rows of dropped episodes are left out, as an actor does. ``until``
    (rows -> bool) may end it before so many rounds.
    """
    rng = np.random.default_rng(seed)
    unfinished = {i: [] for i in range(manager.env_num)}
    kept = {i: [] for i in range(manager.env_num)}
    dropped = dict.fromkeys(range(manager.env_num), 0)
    seen, actions_of = {}, {}
    for _ in range(rounds):
        if manager.done or (until is not None and until(kept)):
            break
        ids, obs = manager.observe()
        actions = rng.integers(0, 2, len(ids))
        for k, i in enumerate(ids.tolist()):
            seen[i], actions_of[i] = first(obs)[k].copy(), int(actions[k])
        block = manager.advance(ids, actions)
        for i in block.abnormal:
            unfinished[i] = []
            dropped[i] += 1
        for k, i in enumerate(block.env_id.tolist()):
            row = (
                seen[i].tolist(),
                actions_of[i],
                float(block.reward[k]),
                first(block.obs)[k].tolist(),
                bool(block.done[k]),
                bool(block.truncated[k]),
            )
            unfinished[i].append(row)
            if block.done[k]:
                assert block.episode_return[k] == sum(r[2] for r in unfinished[i])
                assert block.episode_length[k] == len(unfinished[i])
                kept[i] += unfinished[i]
                unfinished[i] = []
    return {i: kept[i] + unfinished[i] for i in kept}, dropped


def whole_episodes(count):
    """``until`` for drive: every env has had so many episodes."""
    return lambda rows: all(sum(r[4] for r in rows[i]) >= count for i in rows)


def check_counter_rows(rows, tag, length, truncate=False, renewed=False):
    """
    Each row is a true transition of CounterEnv, and rows follow one another; answers the number of whole episodes.
    A renewed env counts its episodes from 1 again.
    """
    whole = 0
    for n, (obs, action, reward, next_obs, done, truncated) in enumerate(rows):
        step = next_obs[2]
        assert obs[0] == next_obs[0] == tag
        assert obs[1] == next_obs[1], 'a transition from one episode to another'
        assert obs[2] == step - 1 and reward == step and next_obs[3] == action
        assert done == (step == length) and truncated == (done and truncate)
        whole += done
        if n:
            before = rows[n - 1]
            assert obs == before[3] if not before[4] else (obs[2:] == [0, -1] and (renewed or obs[1] > before[3][1]))
    return whole


class HangClock:
    """
    The clock of a manager's timeouts, which runs on (by ``STEP_S`` each time it is read) only while no env works but
    those that hang: the ones whose ``hang_file`` is there. So what hangs is late for certain, and nothing else ever is,
    however slow the machine.
    """

    STEP_S = 0.1

    def __init__(self, monkeypatch, manager):
        self._manager, self._now = manager, 0.0
        self._hang_files = [cfg.get('hang_file') for cfg in manager._setup.cfgs]
        manager._cfg['retry_waiting_time'] = 0.0
        for module in CLOCKED:
            monkeypatch.setattr(module, 'time', SimpleNamespace(monotonic=self.monotonic))

    def monotonic(self):
        running = self._manager._live.groups.jobs if self._manager._live is not None else {}
        if running and all(any(self._hangs(i) for i in job.ids) and job.kind != 'start' for job in running.values()):
            self._now += self.STEP_S
        return self._now

    def _hangs(self, i):
        return self._hang_files[i] is not None and os.path.exists(self._hang_files[i])


def threads_end():
    """Wait until threads that managers gave up have ended."""
    for thread in threading.enumerate():
        if thread.name.startswith('nervex-envs'):
            thread.join(60)


@contextlib.contextmanager
def nothing_left_behind():
    """No child process, open file or shared memory segment more than before."""
    before = (children(), open_files(), shared_segments())
    yield
    threads_end()
    after = (children(), open_files())
    assert after[0] <= before[0], 'a process was left behind'
    assert not left_segments(before[2]), 'a shared memory segment was left behind'
    assert len(after[1]) <= len(before[1]), f'files left open: {sorted(after[1])}'


def children():
    """Pids of the children of this process, zombies included."""
    pid, found = os.getpid(), set()
    for entry in os.listdir('/proc'):
        if entry.isdigit():
            with contextlib.suppress(OSError, IndexError), open(f'/proc/{entry}/stat') as f:
                if int(f.read().rsplit(')', 1)[1].split()[1]) == pid:
                    found.add(int(entry))
    return found


def open_files():
    return set(os.listdir('/proc/self/fd'))


def shared_segments():
    return set(os.listdir('/dev/shm')) if os.path.isdir('/dev/shm') else set()


def left_segments(before):
    """
    New files of /dev/shm that stay and that no other program holds. What another one makes and removes meanwhile comes
    and goes.
    """
    left = shared_segments() - before
    for _ in range(40):
        left &= shared_segments()
        if not left or not (left := left - held_by_others()):  # to look at all processes takes long
            break
        time.sleep(0.05)
    return left


def held_by_others():
    """Names of the files of /dev/shm that processes other than this one and its children map or have open."""
    ours, found = {os.getpid(), *children()}, set()
    for entry in os.listdir('/proc'):
        if entry.isdigit() and int(entry) not in ours:
            with contextlib.suppress(OSError), open(f'/proc/{entry}/maps') as f:
                found.update(re.findall(r'/dev/shm/(\S+)', f.read()))
            with contextlib.suppress(OSError):
                for fd in os.listdir(f'/proc/{entry}/fd'):
                    with contextlib.suppress(OSError):
                        found.add(os.path.basename(os.readlink(f'/proc/{entry}/fd/{fd}').removesuffix(' (deleted)')))
    return found
