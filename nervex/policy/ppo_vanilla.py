"""Proximal policy optimisation by hand: no armor, no adder, no plugin; plain torch from the draw to the step."""

from __future__ import annotations

import math
from typing import Any

import torch

from nervex.data import Batch
from nervex.policy.batched import batched
from nervex.policy.common_policy import CommonPolicy
from nervex.policy.ppo import value_in
from nervex.policy.traj_block import batched_steps, without_time
from nervex.rl_utils import flatten_time
from nervex.utils import POLICY_REGISTRY
from nervex.utils.declare import setting, settings


@POLICY_REGISTRY.register('ppo_vanilla')
class PPOVanillaPolicy(CommonPolicy):
    """
    Overview:
        The PPO of ``ppo``, spelled out. The network gives ``logit`` (one head, or mu and sigma for continuous actions)
        and ``value``; actions are drawn here, advantages are summed here, from the last step to the first.
    """

    config = settings(
        policy_type='ppo_vanilla',
        on_policy=True,
        learn=dict(
            epochs=setting(10, 'int >= 1', 'passes over what was collected'),
            learning_rate=3e-4,
            grad_clip_norm=setting(0.5, 'number > 0', 'largest norm of the gradient'),
            optimizer=setting('adam', "'adam'", 'there is no choice here'),
            optimizer_eps=setting(None, 'None', 'nor here'),
            learning_rate_schedule=setting('constant', "'constant'", 'nor here'),
            algo=dict(
                clip_ratio=setting(0.2, 'number > 0', 'eps: the ratio counts within 1 - eps .. 1 + eps'),
                value_weight=setting(0.5, 'number >= 0', 'weight of the value loss'),
                entropy_weight=setting(0.01, 'number', 'weight of the entropy bonus'),
                discount_factor=0.99,
                gae_lambda=0.95,
            ),
        ),
    )
    _default_model = 'fc_vac'

    action_kinds = ('discrete', 'continuous')
    action_range = (-1.0, 1.0)
    takes_action_mask = False
    no_nstep = 'generalised advantages weigh all numbers of steps, by gae_lambda'
    resume_parts: tuple[str, ...] = ('_generator',)
    _losses = 'total_loss policy_loss value_loss entropy_loss'
    _logs = f'cur_lr {_losses} approx_kl clipfrac grad_norm'

    # ---- learn ----
    def _init_learn(self) -> None:
        learn = self._cfg.learn
        self._optimizer = torch.optim.Adam(
            self._model.parameters(), lr=learn.learning_rate, weight_decay=learn.weight_decay
        )

    def _loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        algo, output = self._cfg.learn.algo, self._model({'obs': data['obs']})
        log_prob, entropy = log_prob_and_entropy(output['logit'], data['action'])
        adv = (data['adv'] - data['adv'].mean()) / (data['adv'].std(correction=0) + 1e-8)
        ratio = (log_prob - data['log_prob']).exp()
        clipped = ratio.clamp(1 - algo.clip_ratio, 1 + algo.clip_ratio)
        policy_loss = -torch.min(ratio * adv, clipped * adv).mean()
        value_loss = 0.5 * (data['return_'] - output['value']).pow(2).mean()
        loss = policy_loss + algo.value_weight * value_loss - algo.entropy_weight * entropy.mean()
        return loss, {
            'policy_loss': policy_loss.detach(),
            'value_loss': value_loss.detach(),
            'entropy_loss': entropy.detach().mean(),
            'approx_kl': (ratio - 1 - ratio.log()).detach().mean(),
            'clipfrac': (clipped != ratio).float().mean(),
        }

    def _forward_learn(self, data: dict[str, Any]) -> dict[str, Any]:
        loss, info = self._loss(data)
        self._optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self._model.parameters(), self._cfg.learn.grad_clip_norm)
        self._optimizer.step()
        rate = self._optimizer.param_groups[0]['lr']
        return {'cur_lr': rate, 'total_loss': loss.detach(), 'grad_norm': norm, **info}

    # ---- collect ----
    def _init_collect(self) -> None:
        self._generator = torch.Generator().manual_seed(int(torch.randint(2**62, ())))

    @torch.no_grad()
    def _forward_collect(self, data_id: list[int], data: dict[str, Any]) -> dict[str, Any]:
        output = self._model(data)
        logit = output['logit']
        if isinstance(logit, tuple):
            mu, sigma = logit
            drawn = mu + sigma * torch.randn(mu.shape, generator=self._generator).to(mu.device)
        else:
            chances = torch.softmax(logit, dim=-1).cpu()
            drawn = torch.multinomial(chances, 1, generator=self._generator).squeeze(1).to(logit.device)
        log_prob, _ = log_prob_and_entropy(logit, drawn)
        action = drawn.clamp(-1, 1) if isinstance(logit, tuple) else drawn  # the env's bounds
        return {'action': action, 'drawn': drawn, 'log_prob': log_prob, 'value': value_in(output, self._model)}

    @batched
    def _process_transition(self, obs: Any, armor_output: dict, timestep: Any) -> dict[str, Any]:
        own = {'action': armor_output['drawn'], 'log_prob': armor_output['log_prob'], 'value': armor_output['value']}
        return {**super()._process_transition(obs, armor_output, timestep), **own}

    @batched_steps
    def _get_train_sample(self, traj_cache: Batch) -> Batch:
        """Steps, time first -> the same steps with ``adv`` and ``return_``, of all envs in one long list."""
        done = torch.as_tensor(traj_cache['done']).float()
        value = torch.as_tensor(traj_cache['value'])
        reward = torch.as_tensor(traj_cache['reward']).reshape(done.shape)
        truncated = torch.as_tensor(traj_cache['truncated']).float()
        adv = self._advantages(value, self._values_of(traj_cache['next_obs'], done.shape), reward, done, truncated)
        kept = {key: traj_cache[key] for key in ('obs', 'action', 'log_prob')}
        steps = Batch.of({**kept, 'adv': adv.numpy(), 'return_': (adv + value).numpy()})
        return without_time(steps, traj_cache)

    @torch.no_grad()
    def _values_of(self, next_obs: Any, shape: torch.Size) -> torch.Tensor:
        """What is behind each step: the very next observation, also where a time limit or the window ended."""
        obs = flatten_time(next_obs) if isinstance(next_obs, Batch) and len(shape) > 1 else next_obs
        obs = obs.to_torch(self._device) if isinstance(obs, Batch) else torch.as_tensor(obs).to(self._device)
        obs = obs if isinstance(obs, dict) else obs.flatten(0, len(shape) - 1)
        return self._model({'obs': obs})['value'].cpu().reshape(shape)

    def _advantages(
        self, value: torch.Tensor, next_value: torch.Tensor, reward: torch.Tensor, done: Any, truncated: Any
    ) -> torch.Tensor:
        algo = self._cfg.learn.algo
        terminated = torch.zeros_like(done) if self._cfg.learn.ignore_done else done * (1 - truncated)
        delta = reward + algo.discount_factor * (1 - terminated) * next_value - value
        adv, carried = torch.empty_like(delta), torch.zeros_like(delta[0])
        for t in reversed(range(len(delta))):
            carried = delta[t] + algo.discount_factor * algo.gae_lambda * (1 - done[t]) * carried
            adv[t] = carried
        return adv

    # ---- eval ----
    def _init_eval(self) -> None:
        """The model alone is enough."""

    @torch.no_grad()
    def _forward_eval(self, data_id: list[int], data: dict[str, Any]) -> dict[str, Any]:
        logit = self._model(data)['logit']
        return {'action': logit[0].clamp(-1, 1) if isinstance(logit, tuple) else logit.argmax(dim=-1)}


def log_prob_and_entropy(logit: Any, action: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Of the categorical distribution of a tensor of logits, or of the normal one of a pair (mu, sigma)."""
    if isinstance(logit, tuple):
        mu, sigma = logit
        log_2pi = math.log(2 * math.pi)
        density = -0.5 * (((action - mu) / sigma).pow(2) + log_2pi) - sigma.log()
        return density.sum(-1), (0.5 + 0.5 * log_2pi + sigma.log()).sum(-1)
    log_p = torch.log_softmax(logit, dim=-1)
    return log_p.gather(-1, action.unsqueeze(-1)).squeeze(-1), -(log_p.exp() * log_p).sum(-1)
