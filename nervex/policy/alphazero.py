"""AlphaZero in the form of Gumbel AlphaZero: a search improves the policy, and the policy learns what it has found."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import torch
from easydict import EasyDict

from nervex.armor.sampling import Draws
from nervex.data import Batch
from nervex.policy.action_space import greedy, legal
from nervex.policy.batched import batched
from nervex.policy.common_policy import CommonPolicy
from nervex.policy.traj_block import batched_steps, without_time
from nervex.policy.tree_search import GameRules, TreeSearch
from nervex.rl_utils import alphazero_data, alphazero_error, gae, gae_data
from nervex.torch_utils.crossing import to_arrays
from nervex.utils import POLICY_REGISTRY, ConfigError
from nervex.utils.declare import setting, settings
from nervex.utils.import_helper import load_attribute


@POLICY_REGISTRY.register('alphazero')
class AlphaZeroPolicy(CommonPolicy):
    """
    Overview:
        For games of two sides whose rules it knows. Each move is found by a search; the loss is the cross entropy with
        the search's improved policy plus c_v (R - V)^2, where R is the outcome of the game (``gae_lambda`` 1) or mixes
        it with what later searches expected. While collecting, moves are drawn by the improved policy. Papers: Silver
        et al. 2018; Danihelka et al. 2022 (the search).
    """

    config = settings(
        policy_type='alphazero',
        game=setting(None, 'str | None', "rules of the game, 'module:object'; None: those that the env names"),
        learn=dict(
            train_step=2,
            batch_size=512,
            optimizer='adamw',
            weight_decay=1e-4,
            algo=dict(
                discount_factor=-1.0,
                gae_lambda=1.0,
                value_weight=setting(1.0, 'number >= 0', 'weight of the value loss'),
                symmetries=setting(True, 'bool', 'batches have boards mirrored and turned, where that changes nothing'),
            ),
        ),
        collect=dict(
            traj_len='inf',
            graph='off',  # leaves come in batches of many sizes
            search=dict(
                simulations=setting(32, 'int in [1, 100000]', 'positions that are looked at for a move'),
                considered=setting(16, 'int in [2, 10000]', 'moves that are tried at most'),
                c_visit=setting(50.0, 'number >= 0', 'the improved policy is softmax(logit + c_scale (c_visit'),
                c_scale=setting(0.1, 'number > 0', '+ most visits) value), where values lie in [-1, 1]'),
                bfloat16=setting(False, 'bool', 'judge positions in bfloat16, for processors that are fast at it'),
            ),
        ),
        eval=dict(simulations=setting(64, 'int in [1, 100000]', 'positions that are looked at for a move')),
    )
    _default_model = 'fc_vac'

    action_kinds = ('game',)
    exported_as = 'by the policy head of its network alone, without a search'
    resume_parts: tuple[str, ...] = ('_draws',)
    no_nstep = 'returns weigh all numbers of steps, by gae_lambda'
    no_priority = 'samples have no TD error'
    _logs = 'cur_lr total_loss policy_loss value_loss grad_norm'

    @classmethod
    def check_config(cls, cfg: EasyDict) -> list[tuple[str, str]]:
        """Settings of this policy that do not go together: pairs (path, what is wrong)."""
        problems = super().check_config(cfg)
        if cfg.game is not None:
            try:
                _rules_of(cfg.game)
            except ValueError as error:
                problems.append(('game', str(error)))
        return problems

    @cached_property
    def _rules(self) -> GameRules:
        if self._cfg.game is None:
            raise ConfigError(["policy.game: got None, must name the rules of the game as 'module:object'"])
        return _rules_of(self._cfg.game)

    # ---- learn ----
    def _data_preprocess_learn(self, data: Batch | list[dict]) -> dict[str, Any]:
        out = super()._data_preprocess_learn(data)
        given = self._model_input(out.pop('obs'))
        if self._cfg.learn.algo.symmetries:
            given, out['policy'] = self._turned(given, out['policy'])
        return {**out, 'given': given}

    def _turned(self, given: dict[str, Any], policy: torch.Tensor) -> tuple[dict[str, Any], torch.Tensor]:
        """Each row by another symmetry than the next one; rows were drawn at random."""
        obs = given['obs']
        seen, acted = self._orders(tuple(obs.shape[1:]), policy.shape[1])
        kind = torch.arange(len(obs), device=obs.device) % len(seen)
        turned = {**given, 'obs': obs.flatten(1).gather(1, seen[kind]).view_as(obs)}
        if 'action_mask' in given:
            turned['action_mask'] = given['action_mask'].gather(1, acted[kind])
        return turned, policy.gather(1, acted[kind])

    def _orders(self, shape: tuple[int, ...], actions: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The symmetries as orders of a flat observation and of the actions, one a row, the identity first."""
        if '_symmetries' not in self.__dict__:
            pairs = [(np.arange(np.prod(shape)), np.arange(actions)), *self._rules.symmetries(shape)]
            seen, acted = (torch.as_tensor(np.stack(orders), device=self._device) for orders in zip(*pairs))
            self._symmetries = seen, acted
        return self._symmetries

    def _loss(self, data: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        output = self._armor.forward(data['given'])
        logit = legal(output['logit'], data['given'].get('action_mask'))
        fields = alphazero_data(logit, data['policy'], output['value'], data['return_'], data['weight'])
        loss = alphazero_error(fields)
        return loss.policy_loss + self._cfg.learn.algo.value_weight * loss.value_loss, {
            'policy_loss': loss.policy_loss.detach(),
            'value_loss': loss.value_loss.detach(),
        }

    # ---- collect and eval ----
    def _init_collect(self) -> None:
        self._collect_armor = self._acting_armor('')
        self._collect_search = self._search(self._cfg.collect.search.simulations)
        self._draws = Draws()

    def _init_eval(self) -> None:
        self._eval_armor = self._acting_armor('')
        self._eval_search = self._search(self._cfg.eval.simulations)

    def _search(self, simulations: int) -> TreeSearch:
        search = self._cfg.collect.search
        return TreeSearch(self._rules, simulations, search.considered, search.c_visit, search.c_scale)

    @batched
    def _forward_collect(self, data_id: list[int], data: dict) -> dict:
        return self._found(self._collect_search, self._collect_armor, data, self._draws)

    @batched
    def _forward_eval(self, data_id: list[int], data: dict) -> dict:
        return self._found(self._eval_search, self._eval_armor, data)

    def _forward_exported(self, data: dict) -> dict:
        output = self._eval_armor.forward(data)
        return {'action': greedy(output['logit'], data.get('action_mask'))}

    def _found(self, search: TreeSearch, armor: Any, data: dict, draws: Draws | None = None) -> dict:
        """What a search finds in positions: drawn by the improved policy, or the best."""
        obs = to_arrays(data['obs'])
        positions, shape, short = self._rules.positions(obs), obs.shape[1:], self._cfg.collect.search.bfloat16

        def evaluate(leaves: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            with torch.autocast(self._device.type, torch.bfloat16, enabled=short):
                output = armor.forward({'obs': self._rules.observe(leaves, shape)})
            return output['logit'], output['value']

        noise = None if draws is None else -draws.races(self._rules.legal(positions))
        found = search(positions, evaluate, noise)
        with np.errstate(divide='ignore'):
            logit = np.log(found.policy)
        return {'action': found.action, 'logit': logit, 'policy': found.policy, 'value': found.value}

    @batched
    def _process_transition(self, obs: Any, armor_output: dict, timestep: Any) -> dict:
        transition = super()._process_transition(obs, armor_output, timestep)
        return {**transition, 'policy': armor_output['policy'], 'value': armor_output['value']}

    @batched_steps
    def _get_train_sample(self, traj_cache: Batch) -> Batch:
        """
        Overview:
            A window of steps, time first, -> positions with the search's policy and ``return_``, the outcome mixed with
            later values by ``gae_lambda``. What lies behind an unfinished game is judged by the value alone.
        """
        traj = traj_cache
        value, reward, done, truncated = (
            torch.as_tensor(traj[key]) for key in ('value', 'reward', 'done', 'truncated')
        )
        next_value, reward = self._next_values(traj, value, done, truncated), reward.reshape(done.shape)
        fields = gae_data(value, reward, next_value=next_value, done=done, truncated=truncated)
        adv = gae(fields, self._gamma, self._cfg.learn.algo.gae_lambda)
        samples = {'obs': traj['obs'], 'policy': traj['policy'], 'return_': (adv + value).numpy()}
        return without_time(Batch.of(samples), traj)


def _rules_of(path: str) -> GameRules:
    """The rules that a setting names; ValueError where there are none."""
    rules = load_attribute(path)
    methods = [name for name in vars(GameRules) if not name.startswith('_')]
    if lacking := [name for name in methods if not callable(getattr(rules, name, None))]:
        raise ValueError(f'got {path!r}, which has no {", ".join(lacking)}; see nervex.policy.tree_search.GameRules')
    return rules
