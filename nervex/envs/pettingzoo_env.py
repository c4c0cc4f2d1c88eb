"""PettingZooEnv: a PettingZoo env as one BaseEnv whose rows are agents."""

import importlib
import pkgutil
from typing import Any

import numpy as np

from nervex.envs.adapter import Adapter
from nervex.envs.common import EnvElementInfo, legal_mask, padded
from nervex.envs.env.base_env import BaseEnvInfo, BaseEnvTimestep
from nervex.envs.spaces import MASK, ActionCodec, ObsCodec, choices_info, reward_info, space_kind
from nervex.utils.declare import setting, settings
from nervex.utils.errors import ExtraMissingError, nearest

_EXTRAS = {'mpe2': 'mpe'}  # package -> extra of nervex that brings it; the others: pettingzoo
_OWN = 'write a BaseEnv for this one'


class PettingZooEnv(Adapter):
    """
    Overview:
        ``env_type='pettingzoo', env_id='mpe2.simple_spread_v3'``: any module with ``parallel_env``, or with an AEC
        ``env`` that PettingZoo can step in parallel, as a team. Agents that see or can do less than others are padded.
        A legal action is what the env's ``action_mask`` says (in a dict observation, or in the infos). An agent that
        has left sees zeros, may only take action 0, which nobody executes, and gets reward 0. The episode ends when all
        of the team have left.
    Shapes:
        - observation: ``agent_state`` :math:`(A, d)`; ``global_state`` :math:`(s, )`, the env's own ``state()``, or
          what all agents see; ``agent_alive`` :math:`(A, )`; for discrete actions ``action_mask`` :math:`(A, n)`
        - action: :math:`(A, )` ints, or :math:`(A, k)` floats, of which an agent takes as many as it has
        - reward: :math:`(1, )`, or :math:`(A, )` with ``team_reward='each'``
    """

    config = settings(
        env_id=setting(None, 'str | None', "module path, e.g. 'mpe2.simple_spread_v3'"),
        env_fn=setting(None, 'callable | None', 'instead of an id: makes the env, without arguments'),
        make_kwargs=setting({}, 'dict', "passed on to parallel_env, e.g. {'N': 3, 'max_cycles': 25}"),
        team=setting(
            None, 'list of str | None', 'the agents that learn, by the beginning of their names; the others: random'
        ),
        team_reward=setting('sum', "'sum' | 'mean' | 'each'", 'over the agents of the team'),
        use_act_scale=setting(False, 'bool', 'the policy speaks [-1, 1]'),
        use_global_state=setting(True, 'bool', 'False: what all agents see instead of state()'),
        flatten_obs=setting(False, 'bool', 'observations of more than one axis as one vector'),
    )

    _converters = ('_acts', '_sees')

    # ------------------------------------------------------------------ the BaseEnv interface
    def reset(self, *, seed: int | None = None, **kwargs: Any) -> dict[str, np.ndarray]:
        """Begin an episode; answers the first observation in the form of ``info()``."""
        self._build()
        if (due := self._due_seed(seed)) is not None:
            kwargs['seed'] = due
            for k, space in enumerate(self._others.values()):
                space.seed(due + k)
        answer = self._env.reset(**kwargs)
        obs, infos = answer if isinstance(answer, tuple) else (answer, {})
        self._seeded, self._running, self._return = True, True, 0.0
        return self._seen(obs, infos, ())

    def step(self, action: Any) -> BaseEnvTimestep:
        """One step of the env inside, in the forms of ``info()``."""
        if not self._running:
            raise RuntimeError(f'{self!r}: call reset() before step(), and after the end of an episode')
        given = self._checked(action)
        acting = [(k, a) for k, a in enumerate(self._team) if self._alive[k]]
        parts = given if self._legal is not None else [row[:size] for row, size in zip(given, self._counts)]
        actions = {a: self._acts[a].to_env(parts[k]) for k, a in acting}
        actions.update((a, self._act_of(a, self._obs.get(a))) for a in self._others if a in self._playing)
        obs, rewards, terminations, truncations, infos = self._env.step(actions)
        each = np.array([float(rewards.get(a, 0.0)) for a in self._team], np.float32) * self._alive
        total = each.mean() if self._cfg.team_reward in ('mean', 'each') else each.sum()
        self._return += float(total)
        reward = each if self._cfg.team_reward == 'each' else np.array([total], np.float32)
        playing = set(self._env.agents)
        ended = [a for a in self._team if terminations.get(a) or truncations.get(a) or a not in playing]
        cut = [a for a in ended if truncations.get(a) and not terminations.get(a)]
        done = len(ended) == len(self._team)
        info: dict[str, Any] = {a: infos[a] for a in infos if infos[a]}
        if done:
            self._running = False
            info.update(final_eval_reward=self._return, truncated=bool(cut))
        return BaseEnvTimestep(self._seen(obs, infos, cut if done else ()), reward, done, info)

    def info(self) -> BaseEnvInfo:
        """The spaces; works before the first reset."""
        self._build()
        count = len(self._team)
        shapes: dict[str, Any] = {
            'agent_state': (count, self._width),
            'global_state': (self._state_size,),
            'agent_alive': (count,),
        }
        values: dict[str, Any] = {**dict.fromkeys(shapes, reward_info().value), 'agent_alive': reward_info(0, 1).value}
        if self._legal is not None:
            shapes[MASK], values[MASK] = self._legal.shape, reward_info(0, 1).value
        rewards = (count,) if self._cfg.team_reward == 'each' else (1,)
        return BaseEnvInfo(count, EnvElementInfo(shapes, values), self._act_info, reward_info(shape=rewards))

    def render(self) -> Any:
        """What the env inside draws; it must have been made with a ``render_mode`` in ``make_kwargs``."""
        return self.env.render()

    def state_dict(self) -> dict[str, Any]:
        """TypeError, so that it is pickled; NotImplementedError where pickle would make the env anew."""
        if hasattr(getattr(self._env, 'unwrapped', None), '_ezpickle_args'):
            raise NotImplementedError(f'{self!r}: is made anew when it is pickled')
        raise TypeError(f'{self!r}: only pickle knows its state')

    def _act_of(self, agent: str, obs: Any) -> Any:
        """The action of an agent that is not of the team, in the env's own form, from what it sees."""
        mask = obs.get(MASK) if isinstance(obs, dict) else None
        return self._others[agent].sample(*(() if mask is None else (np.asarray(mask, np.int8),)))

    # ------------------------------------------------------------------ building
    def _make(self) -> Any:
        return make_pettingzoo(self._cfg)

    def _wrap(self, env: Any) -> Any:
        """The env if all its agents act at once, or PettingZoo's conversion of one that says this changes nothing."""
        if not hasattr(env, 'agent_iter'):
            return env
        if not getattr(env, 'metadata', {}).get('is_parallelizable'):
            raise TypeError(
                f'{self!r}: its agents act in turn (AEC), and its metadata does not say is_parallelizable, so that '
                f"they cannot act at once; two of them play against each other with env_type='pettingzoo_game'"
            )
        from pettingzoo.utils.conversions import aec_to_parallel

        return aec_to_parallel(env)

    def _bind(self) -> None:
        """Who plays, and one form for all of the team: of the agent that sees most and of the one that can do most."""
        names = list(self._env.possible_agents)
        wanted = self._cfg.team
        self._team = [a for a in names if wanted is None or a.startswith(tuple(wanted))]
        self._others = {a: self._env.action_space(a) for a in names if a not in self._team}
        if not self._team:
            raise ValueError(f'env.team: got {wanted}, but the agents of {self!r} are {", ".join(names)}')
        self._sees = {a: self._obs_codec(a) for a in self._team}
        self._acts = {a: self._act_codec(a) for a in self._team}
        self._sizes = {a: _seen_size(codec.info.shape) for a, codec in self._sees.items()}
        self._width = max(self._sizes.values())
        space = getattr(self._env, 'state_space', None) if self._cfg.use_global_state else None
        self._has_state = space is not None
        self._state_size = sum(self._sizes.values()) if space is None else self._size_of_state(space)
        infos = [codec.info for codec in self._acts.values()]
        if len({info.value['kind'] for info in infos}) > 1:
            raise TypeError(f'{self!r}: all agents of a team act alike, but {self._by_agent("action_space")}; {_OWN}')
        self._counts = [int(info.shape[0]) for info in infos]  # choices of an agent, or numbers of its action
        self._legal: Any = legal_mask(self._counts) if infos[0].value['kind'] == 'discrete' else None
        if self._legal is not None:
            self._act_info = choices_info((max(self._counts),) * len(infos))
            return
        low, high = (
            padded([np.broadcast_to(info.value[end], info.shape) for info in infos], fill=fill)
            for end, fill in (('min', -1.0), ('max', 1.0))
        )
        self._act_info = reward_info(low, high, low.shape)

    def _obs_codec(self, agent: str) -> ObsCodec:
        space = self._env.observation_space(agent)
        axes = max((len(part.shape) for part in _boxes(space)), default=1)
        if axes > 1 and not self._cfg.flatten_obs:
            what = 'an image' if axes == 3 else f'an array of {axes} axes'
            raise TypeError(
                f'{self!r}: agent {agent!r} sees {what}, {space}, and the nets of teams take vectors; '
                f'set env.flatten_obs=True to have it flattened, or {_OWN}'
            )
        return ObsCodec(space, flatten=True)

    def _act_codec(self, agent: str) -> ActionCodec:
        space = self._env.action_space(agent)
        if space_kind(space) not in ('Discrete', 'Box'):
            raise TypeError(f'{self!r}: agent {agent!r} acts by {space}; a team acts by Discrete or by Box; {_OWN}')
        return ActionCodec(space, self._cfg.use_act_scale)

    def _size_of_state(self, space: Any) -> int:
        if len(space.shape or ()) != 1:
            text = f'{self!r}: state() is no vector but {space}; set env.use_global_state=False to take what agents see'
            raise TypeError(text)
        return int(space.shape[0])

    def _by_agent(self, name: str) -> str:
        return ', '.join(f'{a} has {getattr(self._env, name)(a)}' for a in self._team)

    # ------------------------------------------------------------------ a step
    def _seen(self, obs: dict, infos: dict, cut: Any) -> dict[str, np.ndarray]:
        """
        Arguments:
            - cut (:obj:`Any`): agents that only a limit has ended: what they see and might do is still asked for
        """
        playing = self._playing = set(self._env.agents)
        if strangers := playing.difference(self._team, self._others):
            raise ValueError(f'{self!r}: {sorted(strangers)} play, but possible_agents are {self._env.possible_agents}')
        self._obs = obs
        self._alive = np.array([a in playing or a in cut for a in self._team])
        rows, mask = [], None if self._legal is None else np.zeros_like(self._legal)
        for k, agent in enumerate(self._team):
            row: Any = np.zeros(self._sizes[agent], np.float32)
            legal = None
            if self._alive[k]:
                if agent not in obs:
                    raise ValueError(f'{self!r}: agent {agent!r} plays, but no observation came for it')
                row, legal = self._row(agent, obs[agent], infos.get(agent))
            rows.append(row)
            if mask is not None:
                self._mark(mask[k], k, legal)
        seen = {'agent_state': padded(rows, self._width), 'agent_alive': self._alive.astype(np.float32)}
        seen['global_state'] = self._state() if self._has_state else np.concatenate(rows, dtype=np.float32)
        if mask is not None:
            self._mask = seen[MASK] = mask
        return seen

    def _row(self, agent: str, obs: Any, info: Any) -> tuple[np.ndarray, Any]:
        """What an agent sees, and its mask where it has one."""
        row, legal = self._sees[agent](obs), (info or {}).get(MASK)
        if isinstance(row, dict):
            row, legal = row['observation'], row[MASK]
        if row.shape != (self._sizes[agent],):
            space = self._env.observation_space(agent)
            raise ValueError(f'{self!r}: agent {agent!r} sees {row.size} numbers, but its space is {space}')
        return row, legal

    def _mark(self, row: np.ndarray, k: int, legal: Any) -> None:
        """Write down what agent k may do."""
        if not self._alive[k]:
            row[0] = 1.0
        elif legal is None:
            row[:] = self._legal[k]
        else:
            legal = np.asarray(legal).reshape(-1)
            if len(legal) != self._counts[k]:
                text = f'its action_mask has {len(legal)} entries, but it has {self._counts[k]} actions'
                raise ValueError(f'{self!r}: agent {self._team[k]!r}: {text}')
            if not legal.any():
                raise ValueError(f'{self!r}: agent {self._team[k]!r} has no legal action: its action_mask is all zeros')
            row[: len(legal)] = legal != 0

    def _state(self) -> np.ndarray:
        state = np.asarray(self._env.state(), np.float32)
        if state.shape != (self._state_size,):
            text = f'state() gave {state.shape}, but its state_space says ({self._state_size},)'
            raise ValueError(f'{self!r}: {text}; set env.use_global_state=False to take what agents see')
        return state

    def _checked(self, action: Any) -> np.ndarray:
        """The actions as an array, a row an agent; ValueError names the agent whose action is wrong."""
        given, count = np.asarray(action), len(self._team)
        shape = (count,) if self._legal is not None else self._act_info.shape
        if given.shape != shape or (self._legal is not None and given.dtype.kind not in 'iu'):
            what = f'{count} ints, one an agent' if self._legal is not None else f'an array of shape {shape}'
            raise ValueError(f'{self!r}: an action is {what} ({", ".join(self._team)}); got {action!r}')
        for k, chosen in enumerate(given.tolist() if self._legal is not None else ()):
            if self._alive[k] and not (0 <= chosen < self._mask.shape[1] and self._mask[k, chosen]):
                legal = np.flatnonzero(self._mask[k]).tolist()
                raise ValueError(f'{self!r}: agent {self._team[k]!r} may not take action {chosen}; legal are {legal}')
        return given


def make_pettingzoo(cfg: Any, makers: tuple[str, ...] = ('parallel_env', 'env')) -> Any:
    """The env that ``cfg.env_id`` names, by the first of these functions that its module has."""
    env_id = cfg.env_id
    if env_id is None:
        raise ValueError("a PettingZoo env needs env.env_id, e.g. env_id='mpe2.simple_spread_v3', or env.env_fn")
    try:
        module = importlib.import_module(env_id)
    except ImportError as error:
        raise ExtraMissingError(_why_no_module(env_id, error)) from error
    maker = next((getattr(module, name) for name in makers if hasattr(module, name)), None)
    if maker is None:
        raise ValueError(f"env.env_id: '{env_id}' has neither parallel_env nor env, so it is no env of PettingZoo")
    return maker(**cfg.make_kwargs)


def _why_no_module(env_id: str, error: ImportError) -> str:
    """What is wrong with an id that cannot be imported: a missing package, or a name that its package does not have."""
    package, _, name = env_id.rpartition('.')
    said = f"env.env_id: '{env_id}' cannot be imported ({error})"
    try:
        names = [found.name for found in pkgutil.iter_modules(importlib.import_module(package).__path__)]
    except (ImportError, ValueError, AttributeError):
        extra = _EXTRAS.get(env_id.partition('.')[0], 'pettingzoo')
        return f'{said}: pip install "nervex[{extra}]", or the package that has the env'
    if name in names:
        return f'{said}: install the package that it needs'
    near = nearest(name, names)
    hint = f"did you mean '{package}.{near}'?" if near else f'{package} has {", ".join(names)}'
    return f'{said}: {hint}'


def _boxes(space: Any) -> list[Any]:
    """The Boxes of an observation space, without the action mask."""
    if space_kind(space) == 'Dict':
        return [box for name, part in space.spaces.items() if name != MASK for box in _boxes(part)]
    if space_kind(space) == 'Tuple':
        return [box for part in space.spaces for box in _boxes(part)]
    return [space] if space_kind(space) == 'Box' else []


def _seen_size(shape: Any) -> int:
    """Numbers in an observation that was made flat, without the action mask."""
    return int((shape['observation'] if isinstance(shape, dict) else shape)[0])
