"""Lives of games that an engine steps all at once."""

from __future__ import annotations

import numpy as np

from nervex.envs.vector_engine import Answer

FIRE = 1


class Lives:
    """
    Overview:
        What ``EpisodicLife`` and ``FireReset`` are to single games (``rules`` of an engine): where a lost life ends an
        episode, the game goes on with the next life, whose first action is FIRE in games that wait for it. ALE's engine
        tells of lost lives (``life_loss_info``); its own ``episodic_life`` would begin a new game after each.
    Arguments:
        - num (:obj:`int`): games
        - fires (:obj:`bool`): whether they wait for FIRE
    """

    def __init__(self, num: int, fires: bool) -> None:
        self._fires = fires
        self._lives, self._begun, self._waits = np.zeros(num, int), np.zeros(num, int), np.zeros(num, bool)

    def begin(self) -> None:
        """All games begin."""
        self._lives[:], self._begun[:], self._waits[:] = 0, -1, False

    def acted(self, actions: np.ndarray, ids: np.ndarray) -> np.ndarray:
        """The actions of these games."""
        return np.where(self._waits[ids], FIRE, actions)

    def answered(self, answer: Answer, ids: np.ndarray) -> Answer:
        """The answers of these games; the last observation of a life is the first one of the next."""
        infos, lives = answer.infos, np.asarray(answer.infos['lives'])
        onward = ~(answer.terminated | answer.truncated)
        begun = infos.get('frame_number', 0) - infos.get('episode_frame_number', 0)
        if answer.final_obs is not None:  # games that have ended are in the next one already
            onward |= begun == self._begun[ids]
        lost = onward & (lives > 0) & (lives < self._lives[ids])
        self._lives[ids], self._begun[ids] = np.where(onward, lives, 0), begun
        self._waits[ids] = lost & self._fires
        if answer.final_obs is None:
            return answer
        final, same = np.array(answer.final_obs), answer.terminated & onward
        final[same] = answer.obs[same]
        return answer._replace(terminated=answer.terminated & (lost | ~onward), final_obs=final)
