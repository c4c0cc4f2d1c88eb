"""Teams: what an env says of its agents, and agents of different sizes as the rows of one array."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from nervex.envs.common.env_element import EnvElementInfo


def padded(rows: Sequence[np.ndarray], width: int | None = None, fill: float = 0.0) -> np.ndarray:
    """
    Overview:
        Vectors of different lengths as one array, an agent a row; ``fill`` stands behind the shorter ones.
    Arguments:
        - width (:obj:`int | None`): of the array; None is the length of the longest
    Returns:
        - array (:obj:`np.ndarray`): (A, width) float32
    """
    sizes = [len(row) for row in rows]
    width = max(sizes) if width is None else width
    out = np.full((len(rows), width), fill, np.float32)
    for k, (row, size) in enumerate(zip(rows, sizes)):
        out[k, :size] = row
    return out


def legal_mask(counts: Sequence[int]) -> np.ndarray:
    """(A, n) float32: 1 for the first ``counts[k]`` actions of agent k, 0 behind them; n is the largest count."""
    return padded([np.ones(count, np.float32) for count in counts])


def agent_num(obs: EnvElementInfo) -> int:
    """How many agents see observations of this form: the rows of ``agent_state``; 1 without one."""
    return obs.shape['agent_state'][0] if isinstance(obs.shape, dict) and 'agent_state' in obs.shape else 1


def team_problems(info: Any) -> list[str]:
    """
    Overview:
        What does not fit together in the ``info()`` of an env whose observations have an ``agent_state``: everything
        that agents have must count as many of them. Empty for other envs.
    """
    shapes, act, count = info.obs_space.shape, info.act_space, info.agent_num
    if not (isinstance(shapes, dict) and 'agent_state' in shapes):
        return []
    problems = []
    for name in [name for name in shapes if name.startswith('agent_') or name == 'action_mask']:
        if not shapes[name] or shapes[name][0] != count:
            problems.append(f'{name} has shape {tuple(shapes[name])}; its first axis must be the {count} agents')
    if len(shapes['agent_state']) < 2:
        problems.append(f'agent_state has shape {tuple(shapes["agent_state"])}, must be ({count}, d): a row an agent')
    value: dict[str, Any] = act.value if isinstance(act.value, dict) else {}
    kind = value.get('kind')
    if kind == 'discrete' or not act.shape or act.shape[0] != count:
        problems.append(
            f'act_space is {kind} of shape {tuple(act.shape)}, must be multi_discrete of shape ({count}, ) or '
            f'continuous of shape ({count}, k): an action for each of the {count} agents'
        )
    elif kind == 'multi_discrete':
        choices = list(value['n'])
        most = int(max(choices))
        if 'action_mask' not in shapes and min(choices) < most:
            agent = choices.index(min(choices))
            problems.append(
                f'agent {agent} has {min(choices)} actions, others {most}: an action_mask must tell them apart'
            )
        elif shapes.get('action_mask', (0, most))[-1] != most:
            problems.append(
                f'action_mask has shape {tuple(shapes["action_mask"])}, must be ({count}, {most}): all actions'
            )
    rewards = getattr(info.rew_space, 'shape', None) or (1,)
    if rewards not in ((1,), (count,)):
        problems.append(
            f'rew_space has shape {tuple(rewards)}, must be (1, ), of the team, or ({count}, ), one an agent'
        )
    return problems
