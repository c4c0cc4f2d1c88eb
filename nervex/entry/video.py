"""Eval mode with pictures: a video of the best and of the worst episode, or a window that shows all of them."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from nervex.entry.eval_entry import config_to_play, trained_evaluator
from nervex.entry.viewers import Album, Window
from nervex.envs import BaseEnv, BaseEnvInfo, BaseEnvTimestep, GymEnv, PettingZooEnv, get_vec_env_setting
from nervex.envs.gym_env import draw_without_screen
from nervex.run.launch import EnvSetting, Passed
from nervex.utils import ExtraMissingError, NervexError
from nervex.utils.class_config import merge_config
from nervex.worker.actor.base_serial_evaluator import Evaluation


class CannotDrawError(NervexError):
    """An environment has no picture to show."""


@dataclass(frozen=True)
class Shown:
    """What the episodes brought, and the video files by what they show: 'best' and 'worst'."""

    evaluation: Evaluation
    videos: dict[str, str]


def eval_and_show(
    cfg: str | dict | None,
    seed: int = 0,
    env_setting: EnvSetting | None = None,
    policy_type: Any = None,
    model: Any = None,
    *,
    load_path: str | None = None,
    n_episode: int | None = None,
    overrides: tuple[str, ...] = (),
    video: str | None = 'mp4',
    render: bool = False,
) -> Shown:
    """
    Overview:
        As ``eval``, with every episode filmed or shown. The envs run in this process; they and their seeds are the same
        as without pictures, except that ``render``, and an env of which a process can have one, plays all episodes in
        one env, one behind the other. Videos go to ``env.replay_path`` or else to ``video/`` in the run's folder.
    Arguments:
        - video (:obj:`str | None`): 'mp4' or 'gif': keep the best and the worst episode; None: no file
        - render (:obj:`bool`): show a window, at the speed of the environment
    """
    passed = Passed(env_setting, policy_type, model)
    resolved = config_to_play(cfg, seed, passed, load_path, overrides)
    with ExitStack() as stack:
        album = None
        if video is not None or render:
            scaling = {key: value for key, value in resolved.env.manager.items() if key.startswith('norm_')}
            resolved.env.update(env_manager_type='base', manager=scaling)
            env_fn, actor_cfgs, env_cfgs = env_setting if env_setting is not None else get_vec_env_setting(resolved.env)
            _prepare_headless()
            make = partial(_drawable, env_fn)
            viewers: list[Any] = []
            fps = _check_picture(make, env_cfgs[0])
            if video is not None:
                album = stack.enter_context(Album(*_place(resolved), video, fps))
                viewers.append(album)
            resolved.env.replay_path = None  # the viewers see all
            if render:
                viewers.append(stack.enter_context(closing(Window(fps))))
            if render or getattr(env_fn, 'one_a_process', False):
                env_cfgs = env_cfgs[:1]
            passed = replace(passed, env_setting=(lambda one: WatchedEnv(make(one), viewers), actor_cfgs, env_cfgs))
        with trained_evaluator(resolved, seed, passed) as evaluator:
            evaluation = evaluator.evaluate(n_episode)
        return Shown(evaluation, {} if album is None else album.finish())


def film_best(cfg: dict, seed: int, checkpoint: Callable[[], str], path: str, n_episode: int) -> str:
    """The best of so many episodes of what this function names, as mp4 or gif by the name of the file, the answer."""
    kind = os.path.splitext(path)[1].lstrip('.').lower()
    if kind not in ('mp4', 'gif'):
        raise ValueError(f'path: got {path!r}, must end in .mp4 or .gif')
    with tempfile.TemporaryDirectory() as folder:
        cfg = merge_config(cfg, dict(env=dict(replay_path=folder)))
        shown = eval_and_show(cfg, seed, load_path=checkpoint(), n_episode=n_episode, video=kind)
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        return shutil.move(shown.videos['best'], path)


def _place(cfg: Any) -> tuple[str, str]:
    """Folder and beginning of the names of videos: in that of the run that wrote the checkpoint, or as configured."""
    path = cfg.learner.load_path
    folder, name = os.path.split(os.path.dirname(os.path.abspath(path)))
    run = cfg.exp_name if '{' not in cfg.exp_name else ''  # blanks are of runs that are to begin
    run = run or (os.path.relpath(folder) if name.startswith('ckptBaseLearner') else '.')
    return cfg.env.replay_path or os.path.join(run, 'video'), os.path.basename(path).removesuffix('.tar').removesuffix(
        '.pth'
    )


def _prepare_headless() -> None:
    """Settings that graphics packages read when they are imported."""
    os.environ.setdefault('PYGAME_HIDE_SUPPORT_PROMPT', '1')
    if sys.platform == 'linux' and not os.environ.get('DISPLAY'):
        with suppress(ExtraMissingError):  # what needs it says so
            draw_without_screen()
        os.environ.setdefault('XDG_RUNTIME_DIR', tempfile.gettempdir())  # SDL reports an error without it


def _drawable(env_fn: Callable[[dict], Any], cfg: dict) -> Any:
    """An env that was told, where it needs to be told, that pictures are wanted."""
    if isinstance(env_fn, type) and issubclass(env_fn, (GymEnv, PettingZooEnv)):
        cfg = {**cfg, 'make_kwargs': {'render_mode': 'rgb_array', **cfg.get('make_kwargs', {})}}
    env = env_fn(cfg)
    return env if isinstance(env, BaseEnv) or callable(getattr(env, 'info', None)) else GymEnv(env)


def _check_picture(make: Callable[[dict], Any], cfg: dict) -> float:
    """Draw one picture, so that what is missing is told before anything is played; answers frames per second."""
    env = make(cfg)
    try:
        env.reset()
        picture_of(env)
        fps = getattr(env, 'render_fps', None) or getattr(getattr(env, 'env', None), 'metadata', {}).get('render_fps')
        return float(fps or 30)
    except ExtraMissingError:
        raise
    except ImportError as e:
        raise ExtraMissingError(f'{env!r}: a package that it draws with is missing ({e})') from e
    finally:
        env.close()


def picture_of(env: Any) -> np.ndarray:
    """
    Overview:
        What an env looks like now: the answer of its own ``render()``, or of the Gym object inside.
    Returns:
        - picture (:obj:`np.ndarray`): uint8, height x width x 3
    """
    for owner in (env, getattr(env, 'env', None)):  # the Gym object of a GymEnv
        render = getattr(owner, 'render', None)
        if callable(render):
            with suppress(NotImplementedError):
                picture = render()
                picture = picture[-1] if isinstance(picture, list) and picture else picture
                if np.ndim(picture) == 3 and np.shape(picture)[2] == 3:
                    return np.asarray(picture).astype(np.uint8, copy=False)
                got = f'an array of shape {picture.shape}' if isinstance(picture, np.ndarray) else repr(picture)
                raise CannotDrawError(
                    f'{env!r}: render() answered {got}, must be an array of height x width x 3; '
                    "a Gym object has to be made with render_mode='rgb_array'"
                )
    raise CannotDrawError(f'{env!r} cannot draw itself: it has no method render() that answers an RGB array')


class WatchedEnv(BaseEnv):
    """
    Overview:
        Passes everything on to an env, and its pictures to viewers, which have the methods ``begin(key)``,
        ``frame(key, picture)`` and ``end(key, episode_return)``; ``key`` tells envs apart.
    """

    def __init__(self, env: Any, viewers: list[Any]) -> None:
        super().__init__({})
        self._env, self._viewers, self._return = env, viewers, 0.0

    def _tell(self, method: str, *what: Any) -> None:
        for viewer in self._viewers:
            getattr(viewer, method)(id(self), *what)

    def reset(self, **kwargs: Any) -> Any:
        """A new episode, and its first picture."""
        obs, self._return = self._env.reset(**kwargs), 0.0
        self._tell('begin')
        self._tell('frame', picture_of(self._env))
        return obs

    def step(self, action: Any) -> BaseEnvTimestep:
        """A step, and the picture behind it."""
        timestep = self._env.step(action)
        self._return += float(np.sum(np.asarray(timestep.reward)))
        self._tell('frame', picture_of(self._env))
        if timestep.done:
            score = timestep.info.get('final_eval_reward', self._return)  # what an evaluation goes by
            self._tell('end', float(np.sum(score)))
        return timestep

    def seed(self, seed: int, dynamic_seed: bool | None = None) -> None:
        """Passed on."""
        self._env.seed(seed, *(() if dynamic_seed is None else (dynamic_seed,)))

    def info(self) -> BaseEnvInfo:
        """The env's own."""
        return self._env.info()

    def close(self) -> None:
        """Passed on."""
        self._env.close()

    def __repr__(self) -> str:
        return repr(self._env)
