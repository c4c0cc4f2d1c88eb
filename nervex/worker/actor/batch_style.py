"""A policy without workers: one Batch in, one Batch out; its updates from a buffer; and single episodes with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from nervex.data import Batch
from nervex.policy import Policy
from nervex.policy.traj_block import TrajBlock
from nervex.torch_utils.crossing import to_arrays
from nervex.utils import tree
from nervex.worker.actor.env_manager.step_block import StepBlock
from nervex.worker.actor.rows import ObsBlock, as_array, in_columns


class BatchPolicy:
    """
    Overview:
        The hooks of a policy as calls with batches. ``policy(Batch(obs=[obs]))`` answers ``act``, ``state`` (one
        recurrent state a row, or None) and ``policy``: what else the model said, for the buffer. An update is
        ``sample -> process_fn -> learn -> post_process_fn``; a subclass may write any of them, and ``forward``, anew.
        ``training`` and ``updating`` are (True, False) while it collects, after ``train()``; (True, True) inside
        ``update``; (False, False) while it is tested, after ``eval()`` and at first.
    Arguments:
        - policy (:obj:`Policy`): with all its modes; what its command mode says of exploration is followed
        - seed (:obj:`int`): of the order of minibatches
    Interfaces:
        forward, process_fn, learn, post_process_fn, update, train, eval
    """

    training = updating = False

    def __init__(self, policy: Policy, seed: int = 0) -> None:
        self.policy, self._rng = policy, np.random.default_rng(seed)
        self.env_steps = self.updates = 0
        self._hooks = {name: in_columns(getattr(policy, f'{name}_mode')) for name in ('collect', 'eval')}
        self._ask = policy.collect_mode.get_attribute
        self.cfg = self._ask('cfg')

    def train(self, training: bool = True) -> BatchPolicy:
        """Collect from now on: explore as in training."""
        self.training = training
        return self

    def eval(self) -> BatchPolicy:
        """Test from now on: no exploration."""
        return self.train(False)

    def __call__(self, batch: Batch, state: Any = None) -> Batch:
        return self.forward(batch, state)

    def forward(self, batch: Batch, state: Any = None) -> Batch:
        """
        Overview:
            Actions for observations.
        Arguments:
            - batch (:obj:`Batch`): ``obs``; and of the step before, for who wants them, ``rew, done, info``: a row that
              is ``done`` begins anew
            - state (:obj:`Sequence | None`): recurrent states, as answered by the call before; None: all begin anew
        Returns:
            - result (:obj:`Batch`): ``act``, ``state``, ``policy``
        """
        name = 'collect' if self.training else 'eval'
        hooks, ids, obs = self._hooks[name], np.arange(len(batch)), batch['obs']
        if self.training:
            counters = dict(learner_step=self.updates, train_iter=self.updates, envstep=self.env_steps)
            self.policy.set_setting('collect', self.policy.command_mode.get_setting_collect(counters))
            self.env_steps += len(ids)
        states = np.full(len(ids), None)
        armor = self._ask(f'{name}_armor') if self._ask('remembers') else None
        memory = None if armor is None else armor.plugin(armor.memory)
        if memory is not None:
            for i in ids.tolist():
                begins = state is None or bool(batch.get('done', states)[i])
                memory.reset([i], None if begins else state[i])
        data_id, data = hooks.data_preprocess(ObsBlock(ids, obs.to_dict() if isinstance(obs, Batch) else obs))
        output = hooks.data_postprocess(data_id, hooks.forward(data_id, data))
        if memory is not None:
            for i, one in enumerate(memory.state_dict()['states'][: len(ids)]):
                states[i] = one
        said = {key: _packed(value) for key, value in output.items() if key not in ('action', 'prev_state')}
        return Batch.of({'act': as_array(output['action']), 'state': states, 'policy': Batch(said)})

    # ---- updates
    def update(self, sample_size: int, buffer: Any) -> dict[str, Any]:
        """
        Overview:
            Learn from a sample: one update of it, or on-policy ``learn.epochs`` passes over it in minibatches.
        Arguments:
            - sample_size (:obj:`int`): rows; 0: all of a ReplayBuffer, in their order of time
            - buffer (:obj:`ReplayBuffer | BufferManager`): steps in their order of time, or training samples
        Returns:
            - info (:obj:`dict`): what the last ``learn`` answered
        """
        found = buffer.sample(sample_size)
        batch, indices = found if isinstance(found, tuple) else (found, None)
        before, self.training, self.updating = self.training, True, True
        try:
            batch = self.process_fn(batch, buffer, indices)
            for part in self._parts(batch):
                info = self.learn(part)
                self.updates += 1
            self.post_process_fn(batch, buffer, indices, info)
        finally:
            self.training, self.updating = before, False
        return info

    def _parts(self, batch: Batch) -> Iterator[Batch]:
        learn = self.cfg.learn
        if not self.cfg.on_policy or 'epochs' not in learn:
            return iter([batch])
        return (part for _ in range(learn.epochs) for part in batch.split(learn.batch_size, True, self._rng))

    def process_fn(self, batch: Batch, buffer: Any, indices: np.ndarray | None) -> Batch:
        """
        Overview:
            Training samples of sampled steps: with n-step rewards, advantages, or what else the policy cuts of them;
            the steps behind them are looked up in the buffer. Without ``indices`` they are training samples already.
        """
        if indices is None:
            return batch
        if self._ask('remembers'):
            raise ValueError(
                f'{type(self.policy).__name__} learns from sequences of steps with their recurrent states, which a '
                'ReplayBuffer has not: collect with a BaseSerialActor, into a BufferManager'
            )
        cut, overlap = self._hooks['collect'].get_train_sample, self._ask('traj_overlap') or 0
        if self.cfg.on_policy:
            episodes = _episodes_of(indices, buffer.next(indices))
            return Batch.cat([cut(TrajBlock.cut(self._transitions(buffer, slots), 0)) for slots in episodes])
        window = [np.asarray(indices)]
        for _ in range(overlap):
            window.append(buffer.next(window[-1]))
        return cut(TrajBlock.cut(self._transitions(buffer, np.stack(window)), overlap))

    def _transitions(self, buffer: Any, slots: np.ndarray) -> dict[str, Any]:
        """The columns of the steps in these slots (T, ) or (T, B), as an actor would have made them."""
        flat = slots.reshape(-1)
        n, steps = len(flat), buffer[flat]
        done = np.asarray(steps['done'], dtype=bool).reshape(n)
        cut = steps.get('truncated', steps['info'].get('truncated', np.zeros(n)))
        truncated = np.asarray(cut, dtype=bool).reshape(n) & done
        if slots.ndim > 1:  # nothing follows the newest steps yet: their windows end as at a time limit
            open_end = (buffer.next(flat) == flat) & ~done
            done, truncated = done | open_end, truncated | open_end
        obs, after, said = (
            part.to_dict() if isinstance(part, Batch) else part
            for part in (steps['obs'], steps['obs_next'], steps['policy'])
        )
        reward = np.asarray(steps['rew'], dtype=np.float32).reshape(n)
        step = StepBlock(flat, after, reward, done, truncated, np.zeros(n), np.zeros(n))
        output = {'action': steps['act'], **_unpacked(said)}
        made = {'truncated': truncated, **self._hooks['collect'].process_transition(obs, output, step)}
        shaped = tree.map(
            lambda x: x.reshape(*slots.shape, *x.shape[1:]), {key: as_array(value) for key, value in made.items()}
        )
        return {key: Batch(value) if isinstance(value, dict) else value for key, value in shaped.items()}

    def learn(self, batch: Batch) -> dict[str, Any]:
        """One update of the networks with training samples; answers what is to be logged."""
        mode = self.policy.learn_mode
        return mode.forward(mode.data_preprocess(batch))

    def post_process_fn(self, batch: Batch, buffer: Any, indices: np.ndarray | None, info: dict[str, Any]) -> None:
        """New priorities back into a buffer that has them."""
        priority = to_arrays(info.get('priority'))
        if priority is not None and indices is None:
            buffer.update({'priority': priority, **{k: batch[k] for k in ('replay_unique_id', 'replay_buffer_idx')}})
        elif priority is not None and hasattr(buffer, 'update_weight'):
            buffer.update_weight(indices, priority)


# ---- single episodes
def train_one_episode(
    env: Any, policy: BatchPolicy, buffer: Any, batch_size: int = 64, max_step: int | None = None, render: bool = False
) -> dict[str, Any]:
    """
    Overview:
        Play one episode, exploring, and store its steps; update after every step, or, where the policy learns only from
        what it has just done, with all of them at the end.
    Arguments:
        - env (:obj:`BaseEnv`): one environment
        - buffer (:obj:`ReplayBuffer`): as long as it has less than ``batch_size`` steps nothing is learned
        - render (:obj:`bool`): keep the pictures that ``env.render()`` draws
    Returns:
        - result (:obj:`dict`): ``ep_reward``, ``ep_step``, ``ep_frames``
    """
    total, on_policy = {'ep_reward': 0.0, 'ep_step': 0}, policy.cfg.on_policy
    frames: list[Any] = []
    for obs, result, timestep in _play(env, policy.train(), total, max_step, frames if render else None):
        said, reward = dict(result[0]['policy'].items()), float(np.sum(timestep.reward))
        cut = not timestep.done and total['ep_step'] == max_step  # ends as by a time limit
        info = {'truncated': cut or bool(timestep.info.get('truncated', False))}
        buffer.add(obs, result.act[0], reward, bool(timestep.done) or cut, timestep.obs, info, said)
        if not on_policy and len(buffer) >= batch_size:
            policy.update(batch_size, buffer)
    if on_policy:
        policy.update(0, buffer)
        buffer.reset()
    return {**total, 'ep_frames': frames}


def test_one_episode(
    env: Any, policy: BatchPolicy, max_step: int | None = None, render: bool = False
) -> dict[str, Any]:
    """Play one episode without exploring; answers the same as ``train_one_episode``."""
    total = {'ep_reward': 0.0, 'ep_step': 0}
    frames: list[Any] = []
    for _ in _play(env, policy.eval(), total, max_step, frames if render else None):
        pass
    return {**total, 'ep_frames': frames}


test_one_episode.__test__ = False  # type: ignore[attr-defined]  # none of pytest's


def _play(env: Any, policy: BatchPolicy, total: dict, max_step: int | None, frames: list | None) -> Iterator[tuple]:
    """The steps of an episode: (observation, result, timestep); sums them up in ``total``."""
    obs, state, done = env.reset(), None, False
    while not done and (max_step is None or total['ep_step'] < max_step):
        if frames is not None:
            frames.append(env.render())
        result = policy(Batch(obs=[obs]), state)
        timestep = env.step(result.act[0])
        total['ep_reward'] += float(np.sum(timestep.reward))
        total['ep_step'] += 1
        yield obs, result, timestep
        obs, state, done = timestep.obs, result.state, bool(timestep.done)


# ---- columns
def _episodes_of(slots: np.ndarray, after: np.ndarray) -> list[np.ndarray]:
    """Slots as trajectories, each in its order of time; the last step of one is its own successor."""
    following = dict(zip(slots.tolist(), after.tolist()))
    begun = following.keys() - {later for slot, later in following.items() if later != slot}
    episodes = []
    for slot in (slot for slot in following if slot in begun):
        chain = [slot]
        while following[chain[-1]] != chain[-1]:
            chain.append(following[chain[-1]])
        episodes.append(np.array(chain))
    return episodes


def _packed(value: Any) -> Any:
    """What a model said, as columns: of several heads one each."""
    if isinstance(value, (list, tuple)):
        return {str(k): _packed(part) for k, part in enumerate(value)}
    return {key: _packed(part) for key, part in value.items()} if isinstance(value, Mapping) else to_arrays(value)


def _unpacked(value: Any) -> Any:
    """The inverse of ``_packed``."""
    if not isinstance(value, dict):
        return value
    parts = {key: _unpacked(part) for key, part in value.items()}
    return list(parts.values()) if parts and all(key.isdigit() for key in parts) else parts
