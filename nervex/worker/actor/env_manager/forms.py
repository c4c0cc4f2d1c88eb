"""The documented form of an env manager: mappings env_id -> row of tensors, made from the block form."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch

from nervex.worker.actor.env_manager.mapping import RowMap, TimestepMap, as_tensor
from nervex.worker.actor.env_manager.step_block import StepBlock


class DocumentedForms:
    """
    Overview:
        ``ready_obs`` and ``step`` over ``observe`` and ``advance``. Everything is copied: what a caller keeps never
        changes under it.
    """

    @property
    def ready_obs(self) -> RowMap:
        """env_id -> observation (tensors, copied) of the envs that wait for an action."""
        self._check_open('ready_obs')
        ids, obs = self.observe()
        return RowMap(ids, as_tensor(obs))

    next_obs = ready_obs

    def step(self, actions: Mapping[int, Any] | Any) -> TimestepMap:
        """
        Overview:
            Step envs.
        Arguments:
            - actions (:obj:`Mapping`): env_id -> action; or the stacked actions of all ready envs, in their order
        Returns:
            - timesteps (:obj:`TimestepMap`): env_id -> BaseEnvTimestep; an env that had to be restarted answers with
              its new first observation, reward 0 and ``info['abnormal'] = True``
        """
        self._check_open('step')
        ids, block = self._ask(actions)
        answer = self.advance(ids, block)
        reward = np.array(answer.reward, np.float32).reshape(len(answer), self._reward_size)
        parts = (
            answer.env_id.tolist(),
            as_tensor(answer.obs),
            torch.from_numpy(reward),
            torch.from_numpy(answer.done.copy()),
            torch.from_numpy(answer.truncated.copy()),
            [dict(info) for info in answer.info],
        )
        if len(answer.abnormal):
            parts = tuple(_join(a, b) for a, b in zip(parts, self._abnormal_rows(answer)))
        return TimestepMap(*parts)

    def _ask(self, actions: Any) -> tuple[np.ndarray, Any]:
        """Ids and action block of a ``step`` call."""
        if isinstance(actions, Mapping):
            if not actions:
                raise ValueError('step(): no action given; pass {env_id: action} for ready envs')
            ids = np.array([self._check_id(i) for i in actions], np.int64)
            return ids, self._action_rows.stack(list(actions.values()))
        ids, _ = self.observe()
        if len(actions) != len(ids):
            raise ValueError(f'step(): {len(ids)} envs are ready, but {len(actions)} actions were given')
        return ids, actions

    def _abnormal_rows(self, answer: StepBlock) -> tuple:
        """The rows of restarted envs: they tell the first observation of the new episode, and why."""
        ids = sorted(int(i) for i in answer.abnormal)
        reasons = {fault.env_id: f'{fault.kind} in {fault.phase}' for fault in self.faults.recent}
        no = torch.zeros(len(ids), dtype=torch.bool)
        return (
            ids,
            as_tensor(self._restarted_obs(ids)),
            torch.zeros(len(ids), self._reward_size),
            no,
            no.clone(),
            [{'abnormal': True, 'reason': reasons.get(i, 'fault')} for i in ids],
        )

    def _restarted_obs(self, ids: Iterable[int]) -> Any:
        """The present observations of envs that were just restarted, stacked."""
        raise NotImplementedError


def _join(rows: Any, more: Any) -> Any:
    if isinstance(rows, dict):
        return {k: _join(rows[k], more[k]) for k in rows}
    return rows + more if isinstance(rows, list) else torch.cat([rows, more])
