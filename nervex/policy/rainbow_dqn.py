"""Rainbow: distributional double DQN with noisy layers, dueling heads, n steps and prioritized replay; and IQN."""

from __future__ import annotations

from typing import Any

import torch

from nervex.policy.action_space import greedy, over_heads
from nervex.policy.batched import batched
from nervex.policy.dqn import DQNPolicy, Forward
from nervex.rl_utils import TDLoss, dist_nstep_td_data, dist_nstep_td_error, iqn_nstep_td_data, iqn_nstep_td_error
from nervex.utils import POLICY_REGISTRY, ConfigError
from nervex.utils.declare import setting, settings


@POLICY_REGISTRY.register('rainbow_dqn')
class RainbowDQNPolicy(DQNPolicy):
    """
    Overview:
        The return's distribution instead of its mean: as probabilities of fixed values (C51), or with ``use_iqn`` as
        quantiles at random fractions. The noise of the layers is drawn anew before each forward pass of an update.
        Papers: Hessel et al. 2018 (Rainbow); Bellemare et al. 2017 (C51); Dabney et al. 2018 (IQN).
    """

    config = settings(
        policy_type='rainbow_dqn',
        use_priority=True,
        use_iqn=setting(False, 'bool', 'implicit quantiles instead of a categorical distribution'),
        learn=dict(
            algo=dict(
                nstep=3,
                tau=setting(8, 'int >= 1', 'IQN: fractions drawn for the network that learns'),
                tau_prim=setting(8, 'int >= 1', 'IQN: fractions drawn for the target'),
                quantile_num=setting(32, 'int >= 1', 'IQN: fractions whose mean chooses the next action'),
                kappa=setting(1.0, 'number >= 0', 'IQN: where the Huber loss turns linear'),
                huber=setting(False, 'False', 'no squared error here'),
            )
        ),
        collect=dict(algo=dict(nstep=3)),
    )

    def default_model(self) -> tuple[str, list[str]]:
        """The registered name of the default model, and the modules to import for it."""
        return 'noise_quantile_fc' if self._cfg.use_iqn else 'noise_dist_fc', ['nervex.model']

    def _init_learn(self) -> None:
        super()._init_learn()
        self._target_noise = noisy_layers(self._armor.target_model)
        self._prepare()

    def _init_collect(self) -> None:
        super()._init_collect()
        self._prepare()
        self._model.train()

    def _prepare(self) -> None:
        algo, iqn = self._cfg.learn.algo, self._cfg.use_iqn
        self._noise = noisy_layers(self._model)
        self._target_noise = getattr(self, '_target_noise', [])
        self._online_kwargs, self._target_kwargs, self._chooser_kwargs = (
            {'num_quantiles': n} if iqn else {} for n in (algo.tau, algo.tau_prim, algo.quantile_num)
        )
        if not iqn:
            self._v_min, self._v_max = support_of(self._model)

    def _passes(self, data: dict[str, Any], online: Forward, target: Forward) -> tuple[dict, dict, Any]:
        """Each pass with noise of its own, and IQN's with a number of fractions of its own."""
        state, next_input = self._model_input(data['obs']), self._model_input(data['next_obs'])
        renew(self._noise)
        output = online(state, **self._online_kwargs)
        with torch.no_grad():
            renew(self._target_noise)
            following = target(next_input, **self._target_kwargs)
            renew(self._noise)
            chooser = online(next_input, **self._chooser_kwargs)
            return output, following, greedy(chooser['logit'], chooser.get('action_mask'))

    def _error_of(self, output: dict, following: dict, taken: Any, weight: Any, kwargs: dict[str, Any]) -> TDLoss:
        if self._cfg.use_iqn:
            quantiles = iqn_nstep_td_data(*(output['q'], following['q'], *taken, output['quantiles'], weight))
            kappa = self._cfg.learn.algo.kappa
            return over_heads(iqn_nstep_td_error, quantiles, self._gamma, kappa=kappa, **kwargs)
        dist = output['distribution']
        fields = dist_nstep_td_data(*(dist, following['distribution'], *taken, weight))
        n_atom = (dist[0] if isinstance(dist, list) else dist).shape[-1]
        support = {'v_min': self._v_min, 'v_max': self._v_max, 'n_atom': n_atom}
        return over_heads(dist_nstep_td_error, fields, self._gamma, **support, **kwargs)

    def _init_eval(self) -> None:
        super()._init_eval()
        self._noise = noisy_layers(self._model)

    @batched
    def _forward_collect(self, data_id: list[int], data: dict) -> dict:
        renew(self._noise)
        return super()._forward_collect(data_id, data)

    @batched
    def _forward_eval(self, data_id: list[int], data: dict) -> dict:
        if not self._noise:
            return super()._forward_eval(data_id, data)
        training = self._model.training
        self._model.eval()
        output = super()._forward_eval(data_id, data)
        self._model.train(training)
        return output


def noisy_layers(model: torch.nn.Module) -> list[Any]:
    """The layers of a model whose noise can be drawn anew."""
    return [module for module in model.modules() if hasattr(module, 'reset_noise')]


def renew(layers: list[Any]) -> None:
    """Draw the noise of these layers anew."""
    for layer in layers:
        layer.reset_noise()


def support_of(model: torch.nn.Module) -> tuple[float, float]:
    """The smallest and the largest return of a model's categorical distribution."""
    for name, buffer in model.named_buffers():
        if name.rpartition('.')[2] == 'support':
            return buffer[0].item(), buffer[-1].item()
    raise ConfigError(
        f'policy.model: {type(model).__name__} has no categorical distribution (no buffer `support`); '
        "take 'noise_dist_fc' or 'noise_dist_conv', or set policy.use_iqn for a network of quantiles"
    )
