"""Soft actor-critic with a learned temperature: for continuous actions, and for discrete ones."""

from __future__ import annotations

import math
from typing import Any

import torch
from easydict import EasyDict
from torch import nn

from nervex.policy.action_space import legal
from nervex.policy.ddpg import OffPolicyACPolicy, smaller
from nervex.torch_utils import Adam
from nervex.torch_utils.flat import FlatParameters
from nervex.utils import POLICY_REGISTRY
from nervex.utils.declare import setting, settings

_NO_START = 'must be positive where the temperature is learned; auto_alpha=False keeps it as it is'


@POLICY_REGISTRY.register('sac')
class SACPolicy(OffPolicyACPolicy):
    """
    Overview:
        y = r + gamma (1 - d) (min Q_target(s', a') - alpha log pi(a'|s')) with a' drawn from the policy; the actor's
        loss is alpha log pi(a|s) - min Q(s, a). The temperature alpha is learned so that the entropy stays near its
        target. Paper: Haarnoja et al. 2018. Discrete actions: :class:`DiscreteSACPolicy`.
    """

    config = settings(
        policy_type='sac',
        learn=dict(
            batch_size=256,
            learning_rate_alpha=setting(None, 'number > 0 | None', 'step size of the temperature; None: learning_rate'),
            algo=dict(
                auto_alpha=setting(True, 'bool', 'learn the temperature'),
                alpha=setting(
                    None, 'number >= 0 | None', 'temperature, at the start if learned; None: 1 learned, else 0.2'
                ),
                target_entropy=setting(None, 'number | None', 'entropy to keep; None: what the action space suggests'),
                actor_update_freq=setting(1, 'int >= 1', 'updates of the critic and the targets for one of the actor'),
            ),
        ),
    )
    _default_model = 'sac'
    _targets_wait = False
    _logs = f'{OffPolicyACPolicy._logs} alpha alpha_loss entropy'
    learn_parts: tuple[str, ...] = ('_temperature', '_optimizer_alpha')

    @classmethod
    def check_config(cls, cfg: EasyDict) -> list[tuple[str, str]]:
        """Settings of this policy that do not go together: pairs (path, what is wrong)."""
        problems = super().check_config(cfg)
        if cfg.learn.algo.auto_alpha and cfg.learn.algo.alpha == 0:
            problems.append(('learn.algo.alpha', f'got 0, {_NO_START}'))
        if 'num_quantiles' in cfg.model and (wrong := cls._wrong_quantiles(cfg.model.num_quantiles)):
            problems.append(('model.num_quantiles', f'got {cfg.model.num_quantiles}, {wrong}'))
        return problems

    @staticmethod
    def _wrong_quantiles(count: int) -> str | None:
        return None if count == 1 else 'must be 1: the critics of this policy give one value; quantiles are policy tqc'

    def _init_learn(self) -> None:
        super()._init_learn()
        learn, algo = self._cfg.learn, self._cfg.learn.algo
        start = algo.alpha if algo.alpha is not None else 1.0 if algo.auto_alpha else 0.2
        if algo.auto_alpha and start <= 0:
            raise ValueError(f'policy.learn.algo.alpha: got {start}, {_NO_START}')
        self._temperature = Temperature(start).to(self._device)
        rate = learn.learning_rate if learn.learning_rate_alpha is None else learn.learning_rate_alpha
        if algo.auto_alpha:
            self._optimizer_alpha = self._scheduled(Adam(FlatParameters(self._temperature), lr=rate))
        self._target_entropy = algo.target_entropy

    def _critic_loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        with torch.no_grad():
            following = self._draw(data['next_obs'])
            cost = self._temperature() * following['log_prob']
        q_values, next_q = self._now_and_next(data, following['action'])
        return self._td_loss(q_values, self._next_value(next_q, cost), data)

    def _now_and_next(
        self, data: dict[str, Any], next_action: torch.Tensor
    ) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """What the critics say of the actions taken, and, without a gradient, the targets of the next ones."""
        with torch.no_grad():
            next_q = self._q_values(self._armor.target_forward, {'obs': data['next_obs'], 'action': next_action})
        return self._q_values(self._armor.forward, {'obs': data['obs'], 'action': data['action']}), next_q

    def _next_value(self, q_values: list[torch.Tensor], cost: torch.Tensor) -> torch.Tensor:
        """What a target builds on: the value of the next action, less what its probability costs."""
        return smaller(q_values) - cost

    def _judged(self, q_values: list[torch.Tensor]) -> torch.Tensor:
        """The value that the actor climbs."""
        return smaller(q_values)

    def _actor_loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        drawn = self._draw(data['obs'])
        q = self._judged(self._q_values(self._armor.forward, {'obs': data['obs'], 'action': drawn['action']}))
        loss = (self._temperature().detach() * drawn['log_prob'] - q).mean()
        return loss, {'entropy': -drawn['log_prob'].detach().mean()}

    def _alpha_loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        """Its gradient raises the temperature while the entropy is below its target."""
        return self._temperature.log_alpha * (data['entropy'] - data['target_entropy']), {}

    def _draw(self, obs: Any) -> dict[str, torch.Tensor]:
        return self._armor.forward({'obs': obs}, param={'mode': 'evaluate', 'generator': self._generator})

    def _update_actor(self, data: dict[str, Any]) -> dict[str, Any]:
        log = super()._update_actor(data)
        if self._cfg.learn.algo.auto_alpha:
            wanted = log['entropy'].new_full((), self._entropy_wanted(data))
            inputs = {'entropy': log['entropy'], 'target_entropy': wanted}
            log['alpha_loss'], _ = self._minimize(self._alpha_loss, inputs, self._optimizer_alpha)
        log['alpha'] = self._temperature().detach()
        return log

    def _entropy_wanted(self, data: dict[str, Any]) -> float:
        if self._target_entropy is None:
            self._target_entropy = -float(data['action'][0].numel())
        return self._target_entropy

    def _forward_eval(self, data_id: list[int], data: dict) -> dict:
        param = {'mode': 'compute_action', 'deterministic': True}
        return {'action': self._eval_armor.forward(data, param=param)['action']}


@POLICY_REGISTRY.register('droq')
class DroQPolicy(SACPolicy):
    """
    Overview:
        SAC whose critics have dropout and LayerNorm, in their targets, too, so that many updates an env step do not
        overestimate; the actor climbs the mean of the critics, once in ``actor_update_freq`` of their updates. How many
        these are: ``learn.train_step`` by ``actor.n_sample``, 20 in the paper. Paper: Hiraoka et al. 2022.
    """

    config = settings(
        policy_type='droq',
        model=dict(dropout=0.01, norm='layer'),
        learn=dict(algo=dict(actor_update_freq=20)),
    )

    def _judged(self, q_values: list[torch.Tensor]) -> torch.Tensor:
        return torch.stack(q_values).mean(0)


@POLICY_REGISTRY.register('sac_discrete')
class DiscreteSACPolicy(SACPolicy):
    """
    Overview:
        y = r + gamma (1 - d) sum_a pi(a|s') (min Q_target(s', a) - alpha log pi(a|s')); the actor's loss is
        sum_a pi(a|s) (alpha log pi(a|s) - min Q(s, a)). Paper: Christodoulou 2019.
    """

    config = settings(
        policy_type='sac_discrete',
        learn=dict(
            batch_size=64,
            algo=dict(
                target_entropy_ratio=setting(0.9, 'number in [0, 1]', 'entropy to keep, as a share of the largest one'),
            ),
        ),
    )
    _default_model = 'sac_discrete'

    action_kinds = ('discrete',)
    takes_action_mask = True
    _collects_by = 'multinomial_sample'
    _evaluates_by = 'argmax_sample'

    def _critic_loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        with torch.no_grad():
            prob, log_prob = self._policy(data['next_obs'])
            q = smaller(self._q_values(self._armor.target_forward, self._model_input(data['next_obs'])))
            next_value = (prob * (q - self._temperature() * log_prob)).sum(-1)
        action = data['action'].unsqueeze(-1)
        of_all = self._q_values(self._armor.forward, self._model_input(data['obs']))
        return self._td_loss([q.gather(-1, action).squeeze(-1) for q in of_all], next_value, data)

    def _actor_loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        prob, log_prob = self._policy(data['obs'])
        with torch.no_grad():
            q = smaller(self._q_values(self._armor.forward, self._model_input(data['obs'])))
        loss = (prob * (self._temperature().detach() * log_prob - q)).sum(-1).mean()
        return loss, {'entropy': -(prob * log_prob).detach().sum(-1).mean()}

    def _policy(self, obs: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """Probabilities and their logarithms; those of illegal actions are 0 and a large negative number."""
        output = self._armor.forward(self._model_input(obs), param={'mode': 'compute_action'})
        log_prob = torch.log_softmax(legal(output['logit'], output.get('action_mask')), dim=-1)
        return log_prob.exp(), log_prob.clamp_min(-1e9)

    def _entropy_wanted(self, data: dict[str, Any]) -> float:
        if self._target_entropy is None:
            with torch.no_grad():
                actions = self._policy(data['obs'])[0].shape[-1]
            self._target_entropy = self._cfg.learn.algo.target_entropy_ratio * math.log(actions)
        return self._target_entropy

    _forward_eval = OffPolicyACPolicy._forward_eval  # the sampler takes the best action


class Temperature(nn.Module):
    """The weight alpha of the entropy; its logarithm is learned."""

    def __init__(self, alpha: float) -> None:
        super().__init__()
        self.log_alpha = nn.Parameter(torch.tensor(float(alpha)).log())

    def forward(self) -> torch.Tensor:
        """The outputs that the class describes."""
        return self.log_alpha.exp()
