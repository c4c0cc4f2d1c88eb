"""Data sets of Minari as trajectory files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from nervex.data import Batch
from nervex.data.trajectories import TrajectoryError, TrajectoryWriter
from nervex.envs.spaces import ActionCodec, ObsCodec
from nervex.utils import tree
from nervex.utils.errors import ExtraMissingError


def import_minari(
    dataset: Any, folder: str, *, flatten_obs: bool = False, one_hot_obs: bool = True, use_act_scale: bool = False
) -> int:
    """
    Overview:
        Write the episodes of a Minari data set as trajectory files, for ``offline_pipeline`` and ``-m offline``.
        Observations and actions take the form that ``env_type='gym'`` gives them with the same settings.
    Arguments:
        - dataset (:obj:`str | minari.MinariDataset`): a data set, or the id of one on this machine, such as
          'D4RL/pointmaze/umaze-v2' (``minari download`` brings it)
        - folder (:obj:`str`): where the numbered files go
        - flatten_obs, one_hot_obs, use_act_scale (:obj:`bool`): as in ``env`` of the config that will learn from it
    Returns:
        - written (:obj:`int`): the number of episodes
    """
    if isinstance(dataset, str):
        try:
            import minari
        except ImportError as error:
            text = f'\'{dataset}\' is a data set of Minari, which is not installed: pip install "minari[hdf5]"'
            raise ExtraMissingError(text) from error
        dataset = minari.load_dataset(dataset)
    obs_codec = ObsCodec(dataset.observation_space, one_hot_obs, flatten_obs)
    act_codec = ActionCodec(dataset.action_space, use_act_scale)
    with TrajectoryWriter(folder) as writer:
        for episode in dataset.iterate_episodes():
            writer.add(_columns(episode, obs_codec, act_codec))
        writer.flush()
        return writer.written


def _columns(episode: Any, obs_codec: ObsCodec, act_codec: ActionCodec) -> Batch:
    obs = tree.map(lambda *parts: np.stack(parts), *(obs_codec(row) for row in _rows(episode.observations)))
    reward, steps = np.asarray(episode.rewards, np.float32), len(episode.rewards)
    ended, cut = (np.asarray(flags, bool) for flags in (episode.terminations, episode.truncations))
    now, following = (tree.map(lambda part, own=own: part[own], obs) for own in (slice(steps), slice(1, steps + 1)))
    if len(tree.leaves(following)[0]) != steps:
        raise TrajectoryError(f'episode {episode.id}: {steps} steps need {steps + 1} observations, to the last one')
    done = ended | cut
    done[-1] = True  # a recording that just stops is cut there
    action = act_codec.from_env(episode.actions)
    columns = dict(obs=now, action=action, reward=reward.reshape(-1, 1), next_obs=following)
    return Batch(columns, done=done, truncated=done & ~ended)


def _rows(column: Any) -> Iterator[Any]:
    """The observations of single steps, of columns in dicts or tuples."""
    if isinstance(column, dict):
        return (dict(zip(column, parts)) for parts in zip(*(_rows(part) for part in column.values())))
    if isinstance(column, tuple):
        return zip(*(_rows(part) for part in column))
    return iter(column)
