"""``CommonPolicy``: what most algorithms share, so that an algorithm's own file holds only the algorithm."""

from __future__ import annotations

from collections import deque
from typing import Any

import torch

from nervex.armor import Armor
from nervex.data import Batch, default_collate
from nervex.graph.acting import BACKENDS as ACTING_BACKENDS
from nervex.graph.loss import BACKENDS, LossFn
from nervex.graph.matmul import CHOICES as MATMULS
from nervex.graph.update import ACTING_GRAPH_AFTER, Update
from nervex.loader import Loader, collection, enum, interval, is_type, optional
from nervex.policy.action_space import model_input
from nervex.policy.base_policy import Policy
from nervex.policy.batched import batched
from nervex.policy.device import to_device
from nervex.policy.traj_block import repeats_of
from nervex.rl_utils import Adder, flatten_time
from nervex.torch_utils import Adam, RMSprop
from nervex.torch_utils.flat import FlatParameters
from nervex.torch_utils.ruled_optimizer import RuledOptimizer


class CommonPolicy(Policy):
    """
    Overview:
        Default pre- and postprocessing of the three modes, n-step samples, and the state of a learner.
        All of it takes N rows at once; a subclass that overrides a hook without ``@batched`` gets rows for that hook.
    """

    config = dict(
        learn=dict(
            train_step=1,  # (int) updates per round of collecting
            batch_size=64,  # (int) rows of one update
            learning_rate=1e-3,  # (float) step size of the optimizer
            weight_decay=0.0,  # (float) L2 penalty
            optimizer='adam',  # (str) 'adam', 'adamw' (weight decay shrinks the weights instead) or 'rmsprop'
            optimizer_eps=None,  # (float | None) what the optimizer adds to its denominator; None: 1e-8
            grad_clip_norm=None,  # (float | None) largest norm of the gradient; None: not clipped
            init_data_count=0,  # (int) rows in the buffer before the first update
            ignore_done=False,  # (bool) treat every end as if the episode went on
            graph='auto',  # (str) the update as a recorded graph: 'off', 'py', 'ts', 'inductor'; 'auto': 'ts', later on
            matmul='auto',  # (str) what multiplies float32 matrices: 'mkl', 'onednn'; 'auto': by layer sizes and CPU
            algo={},
        ),
        collect=dict(
            traj_len=None,  # (int | 'inf' | None) steps of one env that make a sample window; 'inf': whole episodes
            graph='auto',  # (str) acting from a recording of the model: 'off', 'py', 'numpy'; 'auto': 'numpy', later on
            unroll_len=1,  # (int) steps of one training sample; above 1 for recurrent models
            algo={},
        ),
    )
    config_rules = dict(
        torch_threads=optional(is_type(int) & interval(1)),
        import_names=optional(Loader(str) | collection(str)),
        learn=dict(
            train_step=is_type(int) & interval(1),
            batch_size=is_type(int) & interval(1),
            learning_rate=interval(0, left_ok=False),
            weight_decay=interval(0),
            optimizer=enum('adam', 'adamw', 'rmsprop'),
            optimizer_eps=optional(interval(0, left_ok=False)),
            grad_clip_norm=optional(interval(0, left_ok=False)),
            init_data_count=is_type(int) & interval(0),
            graph=enum('auto', *BACKENDS),
            matmul=enum(*MATMULS),
            algo=dict(discount_factor=interval(0, 1), nstep=is_type(int) & interval(1)),
        ),
        collect=dict(
            traj_len=optional(enum('inf') | is_type(float) & interval(1) | is_type(int) & interval(1)),
            graph=enum('auto', *ACTING_BACKENDS),
            unroll_len=is_type(int) & interval(1),
            algo=dict(nstep=is_type(int) & interval(1)),
        ),
        eval={},
    )
    resume_parts = ('_the_adder',)

    # ---- learn ----
    def _data_preprocess_learn(self, data: Batch | list[dict]) -> dict[str, Any]:
        """
        Overview:
            Rows -> tensors on the device. ``done`` becomes 1. where the episode truly ended and 0. where only the time
            ran out; ``weight`` is the buffer's importance weight with ``use_priority``, else None.
        """
        if isinstance(data, Batch):
            out = data.to_torch(self._device if self._use_cuda else None)
        else:
            out = to_device(default_collate(list(data)), self._device)
        done, truncated = out.get('done'), out.get('truncated')
        if self._cfg.learn.ignore_done:
            out['done'] = None
        elif done is not None:
            out['done'] = done.float() if truncated is None else (done > truncated).float()  # done and not truncated
        if (reward := out.get('reward')) is not None and reward.dim() == 2 and reward.shape[1] == 1:
            out['reward'] = reward.squeeze(1)  # rows carry rewards of shape (1, )
        out['weight'] = out.get('IS') if self._use_priority else None
        return out

    @property
    def _use_priority(self) -> bool:
        return self._cfg.use_priority

    def _state_dict_learn(self) -> dict:
        """Model, optimizer and target network, as far as the policy has them under the usual names."""
        state = {'model': self._model.state_dict()}
        for name, part in self._learn_parts().items():
            state[name] = part.state_dict()
        return state

    def _load_state_dict_learn(self, state_dict: dict) -> None:
        self._model.load_state_dict(state_dict['model'])
        for name, part in self._learn_parts().items():
            if name in state_dict:
                part.load_state_dict(state_dict[name])

    def _learn_parts(self) -> dict[str, Any]:
        """Everything beside the model that a resumed learner needs, by name; each has ``state_dict``."""
        parts = {}
        if hasattr(self, '_optimizer'):
            parts['optimizer'] = self._optimizer
        armor = getattr(self, '_armor', None)
        if armor is not None and hasattr(armor, 'target_model'):
            parts['target_model'] = armor.target_model
        return parts

    # ---- collect and eval ----
    @batched
    def _data_preprocess_collect(self, data: Any) -> tuple[list[int], dict]:
        """``{env_id: obs}``, or the actor's block of observations -> (env ids, the model's input)."""
        if isinstance(data, dict):
            ids = list(data)
            return ids, self._model_input(to_device(default_collate([data[i] for i in ids]), self._device))
        return data.env_id, self._model_input(to_device(data.obs, self._device))

    def _model_input(self, obs: Any) -> dict[str, Any]:
        """``{'obs': batch}``; an ``action_mask`` among the observations goes beside the rest."""
        if isinstance(obs, torch.Tensor):
            return {'obs': obs}
        heads = self._cfg.model['action_dim'] if 'action_dim' in self._cfg.model else None
        return model_input(obs, heads if isinstance(heads, (list, tuple)) else None)

    @batched
    def _data_postprocess_collect(self, data_id: list[int], output: dict) -> dict:
        """The output on the CPU, still as columns; workers cut it into rows where a hook wants rows."""
        return to_device(output, torch.device('cpu')) if self._use_cuda else output

    @batched
    def _data_preprocess_eval(self, data: Any) -> tuple[list[int], dict]:
        return self._data_preprocess_collect(data)

    @batched
    def _data_postprocess_eval(self, data_id: list[int], output: dict) -> dict:
        return self._data_postprocess_collect(data_id, output)

    def _acting_armor(self, sampler: str, **kwargs: Any) -> Armor:
        """An armor for acting: the model without gradients, from a recording where that was chosen, and a sampler."""
        armor, graph = Armor(self._model), self._cfg.collect.graph
        if graph != 'off' and self._device.type == 'cpu':
            backend, after = ('numpy', ACTING_GRAPH_AFTER) if graph == 'auto' else (graph, 0)
            armor.add_plugin('main', 'graph', backend=backend, after=after)
        armor.add_plugin('main', sampler, **kwargs)
        armor.add_plugin('main', 'grad', enable_grad=False)
        return armor

    def _reset_collect(self, data_id: list[int] | None = None) -> None:
        armor = getattr(self, '_collect_armor', None)
        if armor is not None:
            armor.reset(data_id=data_id)

    def _reset_eval(self, data_id: list[int] | None = None) -> None:
        armor = getattr(self, '_eval_armor', None)
        if armor is not None:
            armor.reset(data_id=data_id)

    def _get_traj_overlap(self) -> int:
        """Steps at a window's end that come again in the next one: n-step targets need the steps behind them."""
        return self._collect_algo('nstep', 1) - 1

    def _collect_algo(self, key: str, default: Any) -> Any:
        return self._cfg.collect.algo[key] if key in self._cfg.collect.algo else default

    @batched
    def _get_train_sample(self, traj_cache: Batch | deque) -> Batch | list[dict]:
        """
        Overview:
            A window of steps -> training samples with n-step rewards. Takes the actor's columns, time first, or the
            documented deque of one env's rows, from which it pops what it used.
        """
        nstep, gamma = self._collect_algo('nstep', 1), self._gamma_for_nstep()
        if isinstance(traj_cache, Batch):
            samples = traj_cache
            if nstep > 1:
                overlap = repeats_of(traj_cache, self._get_traj_overlap())
                samples = self._the_adder.get_nstep_return_data(traj_cache, nstep, gamma=gamma, overlap=overlap)
            return samples if traj_cache['done'].ndim == 1 else flatten_time(samples)
        traj_len = self._cfg.collect.traj_len or 1
        window = self._the_adder.get_traj(traj_cache, traj_len, return_num=nstep if nstep > 1 else 0)
        window = self._the_adder.get_nstep_return_data(window, nstep, gamma=gamma)
        return self._the_adder.get_train_sample(window)

    @property
    def _the_adder(self) -> Adder:
        if not hasattr(self, '_adder'):
            self._adder = Adder(self._use_cuda, self._cfg.collect.unroll_len)
        return self._adder

    def _gamma_for_nstep(self) -> float | None:
        learn = self._cfg.learn.algo
        return learn.discount_factor if 'discount_factor' in learn else None

    # ---- update ----
    def _new_optimizer(self, module: torch.nn.Module, learning_rate: float | None = None) -> RuledOptimizer:
        """The optimizer over a module's parameters, made flat (once, for several), by the settings of ``learn``."""
        learn, kwargs = self._cfg.learn, {}
        if learn.grad_clip_norm is not None:
            kwargs.update(grad_clip_type='clip_norm', clip_value=learn.grad_clip_norm)
        if learn.optimizer_eps is not None:
            kwargs['eps'] = learn.optimizer_eps
        if learn.optimizer == 'adamw':
            kwargs['optim_type'] = 'adamw'
        flat = FlatParameters.of(module) or FlatParameters(module)
        rate = learn.learning_rate if learning_rate is None else learning_rate
        make = RMSprop if learn.optimizer == 'rmsprop' else Adam
        return make(flat, lr=rate, weight_decay=learn.weight_decay, **kwargs)

    def _minimize(self, loss_fn: LossFn, data: dict, optimizer: Any) -> tuple[torch.Tensor, dict]:
        """
        Overview:
            One update of ``optimizer``'s parameters along the gradient of ``loss_fn(data) -> (loss, log values)``; the
            loss function is a method of the policy, and everything that changes enters it as a tensor in ``data``.
        """
        return self._update_of(loss_fn, optimizer)(data)

    def _update_of(self, loss_fn: LossFn, optimizer: Any) -> Update:
        updates = self.__dict__.setdefault('_updates', {})
        name = loss_fn.__name__
        if name not in updates:
            learn = self._cfg.learn
            updates[name] = Update(loss_fn, optimizer, learn.graph, self._model, self._use_distributed, learn.matmul)
            if name in self.__dict__.get('_update_states', {}):
                updates[name].load_state_dict(self._update_states[name])
        return updates[name]

    def run_state_dict(self) -> dict[str, Any]:
        """The state of the ``resume_parts``, and of the updates made so far by the name of their loss."""
        updates = {name: update.state_dict() for name, update in self.__dict__.get('_updates', {}).items()}
        return {**super().run_state_dict(), 'updates': updates}

    def load_run_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what ``run_state_dict`` gave; an update takes its part when it is first made."""
        super().load_run_state_dict(state)
        self._update_states = state['updates']
