"""AtariEnv: a game of the Arcade Learning Environment by its name, with the usual preprocessing."""

from __future__ import annotations

from typing import Any

from easydict import EasyDict

from app_zoo.atari.envs.lives import Lives
from nervex.envs.gym_env import GymEnv, find_spec, known_spec
from nervex.envs.vector_engine import bare_name, make_engine
from nervex.envs.wrappers.atari import waits_for_fire
from nervex.utils.declare import setting, settings
from nervex.utils.errors import ConfigError, ExtraMissingError, UnknownNameError


class AtariEnv(GymEnv):
    """
    Overview:
        ``env_type: atari, env_id: Pong``: grey frames of 84 x 84 pixels, four of them stacked, each after four of the
        game's. Whoever collects sees a lost life as an end and the sign of a reward; who evaluates plays whole games
        for their score. ``env_manager_type: vector`` steps all games at once, by ALE's own threads.
    """

    config = settings(
        env_id=setting('Pong', 'str', "the game: 'Pong', 'SpaceInvaders', ...; or an id, 'ALE/Pong-v5'"),
        frame_skip=setting(4, 'int >= 1', 'frames of the game a step; of the last two the brighter pixels are seen'),
        frame_stack=setting(4, 'int >= 1', 'steps that are seen at once'),
        frame_size=setting(84, 'int >= 8', 'pixels of a side'),
        noop_max=setting(30, 'int >= 1', 'a game begins with up to so many frames without action'),
        sticky=setting(
            0.0, 'number in [0, 1]', "how often the game repeats the last action instead (v5 games' own: 0.25)"
        ),
        full_actions=setting(False, 'bool', 'all 18 actions, not only those that do something in the game'),
        episodic_life=setting(True, 'bool', 'while collecting a lost life ends an episode'),
        clip_reward=setting(True, 'bool', 'while collecting only the sign of a reward counts'),
        max_frames=setting(108_000, 'int >= 1', 'frames of the game until it is cut off'),
        vector_backend=setting('auto', "'auto' | 'ale' | 'envpool'", 'who steps all games at once; auto: ale'),
    )

    def __init__(self, cfg: dict | None = None) -> None:
        super().__init__(cfg)
        c = self._cfg
        c.env_id, self._limit = full_id(c.env_id), limit_of(c)
        c.make_kwargs = {**_game(c), 'frameskip': 1, 'obs_type': 'grayscale', **c.make_kwargs}
        kept = dict(frame_stack=c.frame_stack, size=c.frame_size, skip=c.frame_skip, noop_max=c.noop_max)
        ends = dict(episodic_life=c.episodic_life, clip_reward=c.clip_reward, max_steps=self._limit)
        c.wrappers = [dict(type='atari', **kept, **ends), *c.wrappers]
        c.max_episode_steps = self._limit

    @staticmethod
    def check_config(cfg: dict) -> list[tuple[str, str]]:
        """A game that there is not."""
        try:
            full_id(cfg['env_id'])
        except (UnknownNameError, ExtraMissingError) as error:
            return [('env_id', str(error))]
        return []

    @classmethod
    def create_vector_env(cls, cfgs: list[dict]) -> Any:
        """ALE's own, or EnvPool's (``vector_backend``), which do all of the preprocessing."""
        c = cls.complete_cfg(cfgs[0])
        by_envpool, trains = c.vector_backend == 'envpool', c.role != 'evaluator'
        skip, clip, ends = (
            ('frame_skip', 'reward_clip', 'episodic_life')
            if by_envpool
            else ('frameskip', 'reward_clipping', 'life_loss_info')
        )
        if c.make_kwargs:
            text = f'got {dict(c.make_kwargs)}, which are for single games; '
            raise ConfigError([f'env.make_kwargs: {text}with env_manager_type vector give env.vector_kwargs'])
        by_lives = c.episodic_life and trains
        made = dict(
            stack_num=c.frame_stack,
            img_height=c.frame_size,
            img_width=c.frame_size,
            noop_max=c.noop_max,
            **{skip: c.frame_skip, clip: c.clip_reward and trains, ends: by_lives},
        )
        env_id = f'{bare_name(c.env_id)}-v5' if by_envpool else full_id(c.env_id)
        given = {'vector_kwargs': {**_game(c), **made, **c.vector_kwargs}}
        backend = 'envpool' if by_envpool else 'ale'
        given |= {'vector_backend': backend, 'env_id': env_id, 'max_episode_steps': limit_of(c)}
        if by_envpool and by_lives:  # which goes on with the next life by itself
            return make_engine({**c, **given}, len(cfgs))
        game = cls(c)
        rules = Lives(len(cfgs), waits_for_fire(game))
        game.close()
        return make_engine({**c, **given}, len(cfgs), rules)


def full_id(name: str) -> str:
    """The id of a game; UnknownNameError if there is none such, ExtraMissingError if there is no ALE."""
    env_id = name if '/' in name or '-v' in name else f'ALE/{name}-v5'
    find_spec('ale_py:ALE/Pong-v5')  # so that ids of all forms are there to be found, and to be named
    if 'ale_py' not in str(known_spec(env_id).entry_point):
        text = f"env_type 'atari' is for games of ALE, which '{env_id}' is not; take env_type=gym"
        raise UnknownNameError(text + " (and its wrapper 'atari', for an env of your own that has an ALE inside)")
    return env_id


def limit_of(cfg: EasyDict) -> int:
    """Steps of an episode at most."""
    return int(cfg.max_episode_steps or cfg.max_frames // cfg.frame_skip)


def _game(cfg: EasyDict) -> dict[str, Any]:
    return dict(repeat_action_probability=cfg.sticky, full_action_space=cfg.full_actions)
