"""GFootballEnv: academy scenarios and whole games of Google Research Football, by one player or by a team."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from app_zoo.gfootball.envs import features
from app_zoo.gfootball.envs.engine import ACTIONS, Engine
from app_zoo.gfootball.envs.picture import draw
from nervex.envs import BaseEnv, BaseEnvInfo, BaseEnvTimestep, EnvElementInfo
from nervex.envs.spaces import choices_info, reward_info
from nervex.utils import ConfigError
from nervex.utils.declare import setting, settings

VIEW = (320, 180)  # pixels that the engine draws, of which ``pixels`` are made


class GFootballEnv(BaseEnv):
    """
    Overview:
        A scenario of Google Research Football. One player of the left team learns, always the one who is at the ball
        (``controlled: 1``), or several do as a team; all others are the engine's. The return of an episode is goals
        made less goals conceded, whatever else rewards there are; its last ``info`` has both, and ``win``. Who began
        and the engine's chances are drawn by the seed.
    Shapes:
        - observation: :math:`(115, )` float32; pictures :math:`(4, 72, 96)` (``extracted``) or :math:`(3, 72, 96)`
          (``pixels``) uint8, ``frame_stack`` times as many planes, the oldest first. Of a team ``agent_state``
          :math:`(A, 115)`, ``global_state`` :math:`(115, )`, in which the whole team is marked, and ``action_mask``
        - action: one of 19, or an array :math:`(A, )` of them
        - reward: :math:`(1, )`, or :math:`(A, )` with ``team_reward='each'``
    """

    config = settings(
        scenario=setting('academy_empty_goal_close', 'str', 'a module of gfootball.scenarios'),
        controlled=setting(1, 'int in [1, 11]', 'players that act; several are a team'),
        representation=setting(
            'simple115', "'simple115' | 'extracted' | 'pixels'", 'numbers; the field from above; what a camera sees'
        ),
        frame_stack=setting(1, 'int >= 1', 'pictures that are seen at once'),
        rewards=setting(
            'scoring',
            "'scoring' | 'scoring,checkpoints'",
            'goals; and a tenth of one for each ring around the goal that the ball enters',
        ),
        team_reward=setting('mean', "'mean' | 'each'", "over a team's players; they differ by checkpoints only"),
        builtin_ai=setting(False, 'bool', "a 20th action: what the engine's own player would do"),
    )
    render_fps = 10

    def __init__(self, cfg: dict | None = None) -> None:
        super().__init__(cfg)
        c = self._cfg
        self._pictures = c.representation != 'simple115'
        if self._pictures and c.controlled > 1:
            raise ConfigError([f"env.representation: got '{c.representation}', but a team sees vectors: 'simple115'"])
        if c.frame_stack > 1 and not self._pictures:
            raise ConfigError(["env.frame_stack: is for pictures, with env.representation='extracted' or 'pixels'"])
        self._action_num = len(ACTIONS) - (not c.builtin_ai)
        self._engine: Engine | None = None
        self._frames: deque[np.ndarray] = deque(maxlen=c.frame_stack)
        self._over = True
        self.raw: dict[str, Any] = {}

    # ---- the env
    def reset(self, *, seed: int | None = None, **kwargs: Any) -> Any:
        rng = self.episode_rng(seed)
        c = self._cfg
        if self._engine is None:
            Engine.check(c.scenario)
            self._engine = Engine(c.scenario, c.controlled, VIEW if c.representation == 'pixels' else None)
        self.raw, self._over = self._engine.reset(rng), False
        self._checkpoints = features.Checkpoints(c.controlled)
        self._goals = np.zeros(2, np.int64)
        self._frames.clear()
        return self._seen()

    def step(self, action: Any) -> BaseEnvTimestep:
        if self._over or self._engine is None:
            raise RuntimeError(f'{self!r}: call reset() before step(), and after the end of an episode')
        c = self._cfg
        self.raw, score, self._over = self._engine.step(self._checked(action))
        self._goals += [score > 0, score < 0]
        rewards = np.full(c.controlled, score, np.float32)
        if c.rewards != 'scoring':
            rewards += self._checkpoints.rewards(self.raw, score)
        reward = rewards if c.team_reward == 'each' else rewards.mean(keepdims=True)
        info = self._summary(score) if self._over else {}
        return BaseEnvTimestep(self._seen(), reward, self._over, info)

    def info(self) -> BaseEnvInfo:
        c = self._cfg
        Engine.check(c.scenario)
        reward = reward_info(shape=(c.controlled if c.team_reward == 'each' else 1,))
        if c.controlled > 1:
            shapes = {
                'agent_state': (c.controlled, features.SIZE),
                'global_state': (features.SIZE,),
                'action_mask': (c.controlled, self._action_num),
            }
            values = {**dict.fromkeys(shapes, reward_info().value), 'action_mask': reward_info(0, 1).value}
            obs = EnvElementInfo(shapes, values)
            return BaseEnvInfo(c.controlled, obs, choices_info((self._action_num,) * c.controlled), reward)
        obs = reward_info(shape=(features.SIZE,))
        if self._pictures:
            planes = (features.PLANES if c.representation == 'extracted' else 3) * c.frame_stack
            obs = reward_info(0, 255, (planes, features.HEIGHT, features.WIDTH), np.uint8)
        return BaseEnvInfo(1, obs, choices_info(self._action_num), reward)

    def render(self) -> np.ndarray:
        """The field from above; with ``representation: pixels`` what the engine draws."""
        if self._engine is not None and self._cfg.representation == 'pixels':
            return self._engine.frame()
        return draw(self.raw)

    def close(self) -> None:
        engine, self._engine, self._over = self._engine, None, True
        if engine is not None:
            engine.close()

    def state_dict(self) -> dict[str, Any]:
        """NotImplementedError: the engine's own state is a pickle, which a file from elsewhere must not bring."""
        raise NotImplementedError(f'{self!r}: the engine has no state that could be saved')

    __getstate__ = state_dict

    def __repr__(self) -> str:
        return f'GFootballEnv({self._cfg.scenario}, controlled={self._cfg.controlled})'

    # ---- parts
    def _seen(self) -> Any:
        c = self._cfg
        if c.controlled > 1:
            mask = np.ones((c.controlled, self._action_num), np.float32)
            seen = {'agent_state': features.vectors(self.raw), 'global_state': features.state(self.raw)}
            return {**seen, 'action_mask': mask}
        if not self._pictures:
            return features.vectors(self.raw)[0]
        picture = features.planes(self.raw) if c.representation == 'extracted' else features.small(self.raw['frame'])
        self._frames.extend([picture] * (1 if self._frames else c.frame_stack))
        return np.concatenate(self._frames)

    def _checked(self, action: Any) -> list[int]:
        actions, count = np.asarray(action).reshape(-1), self._cfg.controlled
        legal = actions.shape == (count,) and actions.dtype.kind in 'iu'
        if not legal or (actions < 0).any() or (actions >= self._action_num).any():
            what = 'an int' if count == 1 else f'{count} ints, one a player,'
            raise ValueError(f'{self!r}: an action is {what} from 0 to {self._action_num - 1}; got {action!r}')
        return actions.tolist()

    def _summary(self, score: int) -> dict[str, Any]:
        made, conceded = self._goals.tolist()
        cut = self.raw['steps_left'] <= 0 and not score
        ends = {'goals': made, 'conceded': conceded, 'win': made > conceded}
        return {'final_eval_reward': float(made - conceded), 'truncated': bool(cut), **ends}
