"""Running statistics that scale observations and rewards, the same ones in every process of a run."""

from __future__ import annotations

from typing import Any

from easydict import EasyDict

from nervex.worker.actor.env_manager import NormalizedEnvManager, normalizer_for

_KEY = 'normalizer'  # beside the weights


class Scaling:
    """
    Overview:
        The envs of one role: scales by what the learner knows, and says what is new. Does nothing where nothing is
        scaled.
    Arguments:
        - frozen (:obj:`bool`): for evaluations, which take nothing in
    """

    def __init__(self, manager: Any, frozen: bool = False) -> None:
        self._normalizer = manager.normalizer if isinstance(manager, NormalizedEnvManager) else None
        self._frozen = frozen
        if self._normalizer is not None:
            (self._normalizer.freeze if frozen else self._normalizer.share)()

    def adopt(self, weights: dict[str, Any]) -> dict[str, Any]:
        """Take out what travelled beside the weights; answers the weights alone."""
        if self._normalizer is None:
            return weights
        weights = dict(weights)
        state = weights.pop(_KEY)
        if self._frozen:  # whatever it had: these belong to the weights
            self._normalizer.load_state_dict(state)
        else:
            self._normalizer.adopt(state)
        return weights

    def news(self) -> dict[str, Any] | None:
        """What these envs showed since this was asked last."""
        return None if self._normalizer is None else self._normalizer.share()


class SharedScaling:
    """
    Overview:
        The learner's side: joins what all actors saw; it is saved in checkpoints as that of a serial run is.
    """

    def __init__(self, cfg_env: EasyDict, learner: Any) -> None:
        self._normalizer = normalizer_for(cfg_env.env_manager_type, cfg_env.manager)
        if self._normalizer is not None:
            learner.attach(_KEY, self._normalizer)

    def learn(self, news: dict[str, Any] | None) -> None:
        """Take in what came with a block."""
        if self._normalizer is not None and news is not None:
            self._normalizer.learn(news)

    def beside(self, weights: dict[str, Any]) -> dict[str, Any]:
        """The weights with the statistics that they were trained with."""
        return weights if self._normalizer is None else {**weights, _KEY: self._normalizer.state_dict()}
