"""``Agent``: from nothing to a policy that acts, in three lines, over the same runs as the command's."""

from __future__ import annotations

import os
import shutil
from html import escape
from typing import Any, cast

import numpy as np
from easydict import EasyDict

from nervex.entry.eval_entry import trained_evaluator
from nervex.entry.serial_entry import serial_pipeline
from nervex.run.acting import Acting
from nervex.run.curve import best_return, run_curve
from nervex.run.defaults import config_from, config_of, seed_from
from nervex.run.folder import AUTO, checkpoint_file, names_in, saved_run
from nervex.run.launch import Passed, prepare_launch
from nervex.run.progress import harmless
from nervex.run.result import RunResult
from nervex.run.state import steps_saved
from nervex.runtime import ENDINGS, load
from nervex.utils import COMMANDER_REGISTRY, ConfigError, NothingThereError
from nervex.utils.class_config import merge_config
from nervex.worker.actor.base_serial_evaluator import Evaluation


class Agent:
    """
    Overview:
        A policy on an env: ``learn`` makes a run as any other, in a folder of its own; the agent acts by the best
        checkpoint of its run (``load`` takes another one), before it has learned by the weights that a run begins with.
    Arguments:
        - policy (:obj:`Any`): name or class of a policy, with ``env``; or a config: a dict, a file, a built-in name
        - env (:obj:`Any`): see ``config_for``; beside a config it takes the place of the config's
        - seed (:obj:`int`): of the run, and of the episodes of ``evaluate``
        - overrides: sections of the config or of its policy: ``learn=dict(learning_rate=3e-4)``
    Interfaces:
        learn, predict, reset, evaluate, record, save, export, load, curve, config, policy, folder, checkpoint, steps
    """

    def __init__(self, policy: Any, env: Any = None, *, seed: int | None = None, **overrides: Any) -> None:
        self._made_of = policy, env, overrides
        self.config = config_from(policy, env, overrides)
        self.seed = seed_from(seed, self.config)
        self.folder: str | None = None
        self.checkpoint: str | None = None
        self._acting: Acting | None = None

    # ---- learning
    def learn(self, steps: int | None = None, progress: bool = True) -> RunResult:
        """
        Overview:
            Train for so many env steps more, and keep the best policy. A later call goes on exactly where the run
            stands, also after Ctrl-C, which saves it and raises KeyboardInterrupt; where the run was solved, to the end
            of these steps.
        Arguments:
            - steps (:obj:`int | None`): None: up to the limits of the config
            - progress (:obj:`bool`): look at the env first, and show how it goes
        """
        if steps is not None and (not isinstance(steps, (int, np.integer)) or isinstance(steps, bool) or steps < 1):
            raise ValueError(f'steps: got {steps!r}, must be an int > 0')
        if COMMANDER_REGISTRY.get(self.config.get('commander', {}).get('commander_type') or 'serial').many_learners:
            raise ConfigError(['commander.commander_type: a league has many learners; serial_pipeline trains them'])
        limit = {} if steps is None else dict(commander=dict(max_env_step=self.steps + int(steps)))
        if self.folder is None:
            self.config = config_from(*self._made_of[:2], merge_config(self._made_of[2], limit))
            self.config.exp_name = self.config.get('exp_name') or AUTO
            self.config.setdefault('events', {'tensorboard': {}})
            if progress:
                import rich

                from nervex.run.probe import probe

                rich.print(probe(self.config, self.seed))
        else:
            solved = steps is not None and saved_run(self.folder).finished == 'solved'
            on = dict(evaluator=dict(stop_val=None, stop_win_rate=None)) if solved else {}
            self.config = EasyDict(merge_config(self.config, {**limit, **on}))
        load = {} if self.folder or not self.checkpoint else dict(learner=dict(load_path=self.checkpoint))
        try:
            result = serial_pipeline(merge_config(self.config, load), self.seed, resume=self.folder, progress=progress)
        except KeyboardInterrupt as e:
            if saved := next(iter(e.args), None):
                self._stands_at(os.path.dirname(os.path.dirname(saved)))
            raise
        self._stands_at(result.exp_path)
        with harmless():
            if progress:
                print(f'{result.verdict} after {result.env_steps:,} env steps, {result.seconds:.1f} s', flush=True)
        return result

    def _stands_at(self, folder: str) -> None:
        self.folder = os.path.abspath(folder)
        self.checkpoint, self._acting = checkpoint_file(self.folder), None

    @property
    def steps(self) -> int:
        """Env steps of its run so far."""
        return 0 if self.folder is None else steps_saved(saved_run(self.folder).ckpt_path)

    def curve(self) -> dict[str, np.ndarray]:
        """The evaluations of the run, as columns: ``env_step, train_iter, seconds, return_mean, ...``."""
        rows = [] if self.folder is None else run_curve(self.folder)
        if not rows:
            raise NothingThereError(f'{self!r}: was not evaluated in a run yet; learn() does')
        return {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}

    # ---- acting
    def predict(self, obs: Any, deterministic: bool = True) -> Any:
        """
        Overview:
            The action for an observation as the env gives it, or an action for each of a batch: what the evaluator
            would take, scaled to the env's bounds. ``deterministic=False`` explores as while collecting.
        """
        return self._ready()(obs, deterministic)

    def reset(self) -> None:
        """Episodes begin anew: a recurrent policy forgets."""
        self._ready().reset()

    def _ready(self) -> Acting:
        if self._acting is None:
            self._acting = Acting(self.config, self.checkpoint, self.seed)
        return self._acting

    @property
    def policy(self) -> Any:
        """The policy that ``predict`` asks, with its modes and its model."""
        return self._ready().policy

    def evaluate(self, n_episode: int | None = None) -> Evaluation:
        """Play episodes in envs of their own: ``mean``, ``returns``, ``lengths``. None: as many as in training."""
        cfg = prepare_launch(self.config, self.seed, load_path=self.checkpoint, collects=False).cfg
        with trained_evaluator(cfg, self.seed, Passed()) as evaluator:
            return evaluator.evaluate(n_episode)

    def record(self, path: str = 'agent.mp4', n_episode: int = 1) -> str:
        """Film the best of so many episodes, as mp4 or gif by the name of the file; answers the file."""
        from nervex.entry.video import film_best

        return film_best(self.config, self.seed, self._trained, path, n_episode)

    # ---- files
    def _trained(self) -> str:
        if self.checkpoint is None:
            raise NothingThereError(f'{self!r}: has not learned anything yet: learn(), or Agent.load(...)')
        return self.checkpoint

    def save(self, path: str) -> str:
        """Copy the checkpoint that it acts by: weights, scaling and config in one file, which ``load`` takes."""
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        return shutil.copyfile(self._trained(), path)

    def export(self, path: str) -> dict[str, Any]:
        """Write what ``predict`` does as .onnx, .pt2 or .npz; answers what the file, which ``load`` takes, says."""
        from nervex.run.export import export_policy

        return export_policy(self.config, self._trained(), path, self.seed)

    @classmethod
    def load(cls, path: str, env: Any = None, trust: bool = False) -> Agent:
        """
        Overview:
            An agent from the folder of a run (its best checkpoint; ``learn`` goes on there), or from a checkpoint, as
            from ``save`` (``learn`` begins a run with its weights). From an exported file what only predicts.
        Arguments:
            - env (:obj:`Any`): in place of the config's; trust (:obj:`bool`): which may name code that you did not sign
        """
        if os.fspath(path).endswith(ENDINGS):
            return cast(Agent, load(path))
        made = cls(config_of(os.path.abspath(path), env, trust))
        if os.path.isdir(path):
            made.seed = saved_run(path).seed
            made._stands_at(path)
        made.checkpoint = checkpoint_file(os.path.abspath(path))
        return made

    # ---- in words
    def _facts(self) -> dict[str, str]:
        facts = dict(zip(('env', 'policy'), names_in(self.config)))
        if self.folder is None:
            return {**facts, 'learned': f'from {self.checkpoint}' if self.checkpoint else 'nothing yet'}
        learned = f'{self.steps:,} env steps, best return {best_return(run_curve(self.folder)):.1f}'
        return {**facts, 'learned': learned, 'folder': self.folder}

    def __repr__(self) -> str:
        return f'Agent({", ".join(f"{name}: {text}" for name, text in self._facts().items())})'

    def _repr_html_(self) -> str:
        cells = (f'<tr><th>{name}</th><td>{escape(text)}</td></tr>' for name, text in self._facts().items())
        return f'<table>{"".join(cells)}</table>'
