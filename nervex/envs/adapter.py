"""What the adapters of other libraries' envs share."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from nervex.envs.env.base_env import BaseEnv


class Adapter(BaseEnv):
    """
    Overview:
        A BaseEnv around an env of another kind, which is given as an object, or made when it is first needed: by
        ``env_fn`` of the config, or by its id. A subclass writes ``_make``, ``_bind`` and ``state_dict``, and asks
        ``_build`` first in whatever needs the env inside, ``self._env``.
    Arguments:
        - cfg (:obj:`dict | Any`): settings, or an env object
    """

    _converters: tuple[str, ...] = ()  # attributes that ``_bind`` makes from the spaces, and that are no state

    def __init__(self, cfg: Any = None) -> None:
        self._given: Any = None
        if cfg is not None and not isinstance(cfg, dict):
            self._given, cfg = cfg, None
        super().__init__(cfg)
        self._env: Any = None
        self._seeded = False  # whether the present seed has reached the env
        self._running = False

    @abstractmethod
    def _make(self) -> Any:
        """The env of the config's id."""

    @abstractmethod
    def _bind(self) -> None:
        """Look at the spaces of the env inside, and prepare what converts."""

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """As BaseEnv says; what ``_bind`` makes is no state."""

    def _wrap(self, made: Any) -> Any:
        """What is put around an env that was made or given."""
        return made

    def _build(self) -> None:
        if self._env is None:
            make = self._make if self._cfg.env_fn is None else self._cfg.env_fn
            self._env = self._wrap(make() if self._given is None else self._given)
            self._bind()

    def _due_seed(self, seed: int | None) -> int | None:
        """With what the env inside is to be seeded by a reset that was given ``seed``; None: it goes on."""
        if seed is not None:
            self.seed(seed, self._dynamic_seed)
        return None if self._seeded and self._dynamic_seed else self._seed

    def seed(self, seed: int, dynamic_seed: bool = True) -> None:
        """Seed the env's own generator, see BaseEnv."""
        super().seed(seed, dynamic_seed)
        self._seeded = False

    def enable_save_replay(self, replay_path: str) -> None:
        """Save a video of every following episode in this folder; the env is made again, with pictures."""
        if self._cfg.env_id is None:
            raise NotImplementedError(f'{self!r}: only an env made by its id can be made again with pictures')
        self.close()
        self._cfg.make_kwargs.setdefault('render_mode', 'rgb_array')
        super().enable_save_replay(replay_path)

    def close(self) -> None:
        """Free what is held; may be called twice."""
        if self._env is not None:
            self._env.close()
        self._env, self._running = None, False

    @property
    def env(self) -> Any:
        """The env inside."""
        self._build()
        return self._env

    metadata = property(lambda self: getattr(self.env, 'metadata', None) or {}, doc='That of the env inside.')

    def __getstate__(self) -> dict:
        """Without what converts, which is made again from the spaces."""
        return {name: value for name, value in self.__dict__.items() if name not in self._converters}

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
        if self._env is not None:
            self._bind()

    def __repr__(self) -> str:
        return f'{type(self).__name__}({self._cfg.env_id or self._env or self._given or "env_fn"})'
